// Saving and loading models and weights; the suffix of the file's name chooses the format, as in
// Keras, and Keras reads and writes the same files.
//
//   save_model(ranker, "ranker.keras");
//   ModelHandle same = load_model("ranker.keras");
//
//   .keras            whole model: configuration, weights, optimizer's state (keras_archive.h)
//   .h5, .hdf5        whole model in Keras's legacy layout (keras_h5.h); or weights alone
//   .weights.h5       weights alone, and the optimizer's state
//
// Classes of one's own are found in layer_registry(), loss_registry() and so on: add them before
// loading.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

struct SaveOptions {
  // In a ".h5" file the optimizer's state too; its config always is, and a ".keras" file always has
  // both.
  bool include_optimizer = true;
  bool overwrite = true;  // false: ValueError if the file exists
  // Save keras_model_of(model) (for_keras.h), which Keras can load, in place of a model that has
  // layers Keras does not.
  bool for_keras = false;
  // "int8": save with_int8_tables(model) (int8_tables.h), a model to serve that is not compiled:
  // the table of each Embedding, and with for_keras of each TPUEmbedding, takes a quarter of the
  // bytes, as where Keras quantizes it.
  std::string table_dtype = "float32";
  // Ways to serve the model beside "serving_default"; signatures(path) gives them (signature.h).
  // Keras does not see them.
  SignatureSpecs signatures = {};
};

// ValueError for another suffix than those of whole models and another table_dtype, and what
// write_keras_h5, write_keras_archive, keras_model_of and with_int8_tables throw; ValueError and
// TypeError, naming it, for a signature that does not fit the model saved. The file appears whole
// or not at all. All processes of a job call it.
void save_model(const Model& model, const std::string& path, const SaveOptions& options = {});
inline void save_model(const ModelHandle& model, const std::string& path,
                       const SaveOptions& options = {}) {
  save_model(*model, path, options);
}

// Throws what save_model throws for the path and these options, of any model: for its suffix, an
// unknown table_dtype, and a folder that does not exist or may not be written (IoError). A program
// calls it before it trains for hours. All processes of a job call it.
void check_save_model(const std::string& path, const SaveOptions& options = {});

struct LoadOptions {
  // Compile the model as it was, the optimizer's state included, if the file says how; without a
  // word otherwise. False for a model that only predicts, and one whose loss is not registered.
  bool compile = true;
  // Refuse a Python lambda as what it is, a danger (ValueError); else as what cannot run here
  // (NotImplementedError).
  bool safe_mode = true;
};

// A new model for the strategy of now. ValueError for suffixes as above; what read_keras_h5 and
// read_keras_archive throw.
ModelHandle load_model(const std::string& path, const LoadOptions& options = {});

struct SaveWeightsOptions {
  bool overwrite = true;  // false: ValueError if the file exists
};

// The weights of any built model, also of classes that no file can describe. ValueError for a
// suffix other than ".weights.h5", ".h5" and ".hdf5".
void save_weights(const Model& model, const std::string& path,
                  const SaveWeightsOptions& options = {});
inline void save_weights(const ModelHandle& model, const std::string& path,
                         const SaveWeightsOptions& options = {}) {
  save_weights(*model, path, options);
}

struct LoadWeightsOptions {
  bool by_name = false;        // of legacy files: layers by name, those without a match stay
  bool skip_mismatch = false;  // leave out weights that do not fit, in place of an error
};

// Assigns the weights of a file of any of the formats, whole models included, to a built model.
// Nothing is assigned before all is known to fit. Returns what was left out with skip_mismatch, a
// line each.
// ValueError for weights that are missing, left over or of another shape, for by_name with a file
// that has no names (".keras", ".weights.h5"), and for another suffix.
std::vector<std::string> load_weights(const Model& model, const std::string& path,
                                      const LoadWeightsOptions& options = {});
inline std::vector<std::string> load_weights(const ModelHandle& model, const std::string& path,
                                             const LoadWeightsOptions& options = {}) {
  return load_weights(*model, path, options);
}

}  // namespace keel
