// Saves and loads models and weights. The suffix of the file name selects the format. Keras reads
// and writes the same files.
//
//   save_model(ranker, "ranker.keras");
//   ModelHandle same = load_model("ranker.keras");
//
//   .keras            a whole model: configuration, weights and optimizer state
//   .h5, .hdf5        a whole model, or only its weights, in Keras's legacy layout
//   .weights.h5       weights and optimizer state
//
// Before you load a model with custom classes, register them (layers/utils/saving.h), or pass them
// in LoadOptions.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/layers/utils/feature_space.h>
#include <keel/layers/utils/saving.h>
#include <keel/savedmodel/keras/min_count.h>
#include <keel/savedmodel/keras/signature.h>
#include <keel/savedmodel/mapped/mapped_tables.h>

namespace keel {

// Options of save_model().
struct SaveOptions {
  // If true, a ".h5" file contains the state of the optimizer. It always contains the optimizer's
  // config, and a ".keras" file always contains both.
  bool include_optimizer = true;
  bool overwrite = true;  // false: ValueError if the file exists
  // If true, saves keras_model_of(model) (for_keras.h), in which layers that Keras does not have
  // are replaced by layers of Keras.
  bool for_keras = false;
  // "float32", or "int8" to save with_int8_tables(model), an uncompiled model for
  // serving. The table of each Embedding, and with for_keras also of each TPUEmbedding, then takes
  // a quarter of the bytes.
  std::string table_dtype = "float32";
  // Signatures in addition to "serving_default"; signatures(path) returns them (signature.h). Keras
  // ignores them.
  SignatureSpecs signatures = {};
  // Tables for unbounded ids are saved without ids that have occurred less often (min_count.h).
  MinCount min_count = {};
};

// Saves a whole model. The file appears as a whole or not at all. All processes of a job must call
// this; rank 0 writes the file.
//
// Throws
// - ValueError for a suffix that is not one of a whole model, for an unknown table_dtype, and for a
//   table of min_count that the model does not have;
// - ValueError or TypeError, naming the signature, if a signature does not fit the model;
// - RuntimeError if the model has no weights yet, or inside a replica;
// - NotImplementedError if a part of the model has no config;
// - IoError if the file cannot be written;
// - the errors of keras_model_of() and with_int8_tables().
void save_model(const Model& model, const std::string& path, const SaveOptions& options = {});
inline void save_model(const ModelHandle& model, const std::string& path,
                       const SaveOptions& options = {}) {
  save_model(*model, path, options);
}

// Throws the errors of save_model() that do not depend on the model: for the suffix, for
// table_dtype, for an existing file without `overwrite`, and for a folder that does not exist or is
// not writable (IoError). Call it before a long training run. All processes of a job must call it.
void check_save_model(const std::string& path, const SaveOptions& options = {});
// Also throws the errors of save_model() that depend on the layers of the model, for signatures and
// for parts without a config. Does not quantize tables, and with for_keras does not convert a model
// whose tables for unbounded ids have no rows yet.
void check_save_model(const Model& model, const std::string& path, const SaveOptions& options = {});

// Options of load_model().
struct LoadOptions {
  // If true, compiles the model as it was compiled when it was saved, with the optimizer's state.
  // Has no effect if the file has no training configuration. Use false for a model that only
  // predicts, and for one whose loss is not registered.
  bool compile = true;
  // Classes that the file may name, in addition to the registered ones.
  std::vector<saving::CustomObject> custom_objects = {};
  // Selects the error for a Python lambda, which cannot run here: ValueError if true, because
  // loading it is unsafe, and NotImplementedError if false.
  bool safe_mode = true;
  // If set, large tables are read in place from the file instead of being loaded, and this object
  // tells which (mapped_tables.h). Use it for models that predict. Null loads all values.
  std::shared_ptr<MappedTables> mapped_tables = nullptr;
};

// Loads a whole model under the current strategy.
//
// Throws
// - ValueError for a suffix that is not one of a whole model, and for an unknown class or config
//   key;
// - ValueError, naming layer, weight and both shapes, if weights are missing, left over or of
//   another shape;
// - NotImplementedError, naming it, for a feature of Keras that is not supported;
// - IoError if the file cannot be read, is damaged or has another format.
ModelHandle load_model(const std::string& path, const LoadOptions& options = {});

// Saves a FeatureSpace alone, as FeatureSpace.save() of Keras does: its config with all that
// adapt() learned. The suffix must be ".keras". Throws ValueError for another suffix and, without
// `overwrite`, if the file exists; RuntimeError before adapt(), if it is needed, and inside a
// replica; IoError if the file cannot be written.
void save_feature_space(const FeatureSpaceLayer& space, const std::string& path,
                        bool overwrite = true);
inline void save_feature_space(const utils::FeatureSpace& space, const std::string& path,
                               bool overwrite = true) {
  save_feature_space(*space, path, overwrite);
}
// Loads a file of save_feature_space() or of FeatureSpace.save() of Keras. The space needs no
// adapt(). Throws ValueError if the root of the file is not a FeatureSpace, and otherwise like
// load_model().
utils::FeatureSpace load_feature_space(const std::string& path);

// Options of save_weights().
struct SaveWeightsOptions {
  bool overwrite = true;    // false: ValueError if the file exists
  MinCount min_count = {};  // as in SaveOptions
};

// Saves the weights of a built model. Unlike save_model(), it supports models of classes without a
// config. Throws ValueError for a suffix other than ".weights.h5", ".h5" and ".hdf5", RuntimeError
// if the model has no weights yet or inside a replica, and IoError if the file cannot be written.
void save_weights(const Model& model, const std::string& path,
                  const SaveWeightsOptions& options = {});
inline void save_weights(const ModelHandle& model, const std::string& path,
                         const SaveWeightsOptions& options = {}) {
  save_weights(*model, path, options);
}

// Options of load_weights().
struct LoadWeightsOptions {
  // If true, matches layers by name instead of by order, and keeps the weights of layers that the
  // file does not have. Only for legacy files.
  bool by_name = false;
  bool skip_mismatch = false;  // skip weights that do not fit instead of throwing
};

// Assigns the weights of a file of any format above, including files of whole models, to a built
// model. All weights are checked before the first one is assigned. Returns one line for each weight
// that was skipped.
//
// Throws ValueError if weights are missing, left over or of another shape, for by_name with a file
// without layer names (".keras", ".weights.h5"), and for another suffix. Throws RuntimeError if the
// model has no weights yet or inside a replica, and IoError if the file cannot be read.
std::vector<std::string> load_weights(const Model& model, const std::string& path,
                                      const LoadWeightsOptions& options = {});
inline std::vector<std::string> load_weights(const ModelHandle& model, const std::string& path,
                                             const LoadWeightsOptions& options = {}) {
  return load_weights(*model, path, options);
}

// Returns a model in which each Embedding has an int8 table, like after Embedding.quantize("int8")
// (layers/core/embedding.h). Embeddings are replaced in Functional and Sequential models, at any
// depth of nesting, but not inside other layers. All other layers are shared with `model`, which
// does not change. The result is not compiled. If there is no table to quantize, returns `model`
// itself.
//
// Throws
// - ValueError for a table that is not float32 or has values that are not finite;
// - ValueError for a layer with tables that Keras does not have, such as TPUEmbedding; apply
//   keras_model_of() (for_keras.h) first, which replaces TPUEmbedding by Embedding;
// - ValueError for a model that contains an Embedding but is neither Functional nor Sequential;
// - RuntimeError if the model has no weights yet, or inside a replica.
ModelHandle with_int8_tables(const Model& model);

}  // namespace keel
