// Saves and loads models and weights. The suffix of the file name selects the format, as in Keras.
// Keras reads and writes the same files.
//
//   save_model(ranker, "ranker.keras");
//   ModelHandle same = load_model("ranker.keras");
//
//   .keras            whole model: configuration, weights, optimizer state (keras_archive.h)
//   .h5, .hdf5        whole model in Keras's legacy layout (keras_h5.h), or only weights
//   .weights.h5       only weights and the optimizer state
//
// Your own classes are looked up in layer_registry(), loss_registry() and the other registries.
// Register them before loading.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

// Options of save_model().
struct SaveOptions {
  // Saves the optimizer state in a ".h5" file. The optimizer config is always saved. A ".keras"
  // file always contains both.
  bool include_optimizer = true;
  bool overwrite = true;  // false: ValueError if the file exists
  // Saves keras_model_of(model) (for_keras.h), which Keras can load, instead of a model with layers
  // that Keras does not have.
  bool for_keras = false;
  // "float32" or "int8". "int8" saves with_int8_tables(model) (int8_tables.h), a model for serving
  // that is not compiled. The table of each Embedding, and with `for_keras` of each TPUEmbedding,
  // takes a quarter of the bytes, as if Keras had quantized it.
  std::string table_dtype = "float32";
  // Signatures in addition to "serving_default". signatures(path) returns them (signature.h). Keras
  // ignores them.
  SignatureSpecs signatures = {};
};

// Writes a whole model to a file. The file is either complete or absent. All processes of a job
// must call this function.
// Throws ValueError for a suffix that is not one of whole models and for an unknown `table_dtype`.
// Throws ValueError or TypeError, naming the signature, if a signature does not fit the saved
// model. Also throws the errors of write_keras_h5, write_keras_archive, keras_model_of and
// with_int8_tables.
void save_model(const Model& model, const std::string& path, const SaveOptions& options = {});
inline void save_model(const ModelHandle& model, const std::string& path,
                       const SaveOptions& options = {}) {
  save_model(*model, path, options);
}

// Throws the errors of save_model that do not depend on the model: for the suffix of `path`, for an
// unknown `table_dtype`, and for a folder that does not exist or is not writable (IoError). Call it
// before a long training. All processes of a job must call it.
void check_save_model(const std::string& path, const SaveOptions& options = {});

// Options of load_model().
struct LoadOptions {
  // Compiles the model as it was compiled when it was saved, including the optimizer state. Does
  // nothing if the file has no training configuration. Set it to false for a model that only
  // predicts, or whose loss is not registered.
  bool compile = true;
  // Python lambdas cannot run here. True: they throw ValueError because they are unsafe. False:
  // they throw NotImplementedError.
  bool safe_mode = true;
};

// Returns a new model, created under the current strategy. Throws ValueError for the same suffixes
// as save_model, and the errors of read_keras_h5 and read_keras_archive.
ModelHandle load_model(const std::string& path, const LoadOptions& options = {});

// Options of save_weights().
struct SaveWeightsOptions {
  bool overwrite = true;  // false: ValueError if the file exists
};

// Writes the weights of a built model, which may contain classes without a config. Throws
// ValueError for a suffix other than ".weights.h5", ".h5" and ".hdf5".
void save_weights(const Model& model, const std::string& path,
                  const SaveWeightsOptions& options = {});
inline void save_weights(const ModelHandle& model, const std::string& path,
                         const SaveWeightsOptions& options = {}) {
  save_weights(*model, path, options);
}

// Options of load_weights().
struct LoadWeightsOptions {
  bool by_name = false;        // legacy files: match layers by name; others keep their weights
  bool skip_mismatch = false;  // skip weights that do not fit instead of throwing
};

// Assigns the weights of a file in any of the formats, including whole models, to a built model.
// Nothing is assigned until all weights are known to fit. Returns one line for each weight or layer
// that was skipped.
// Throws ValueError for weights that are missing, superfluous or of another shape, for `by_name`
// with a file without names (".keras", ".weights.h5"), and for an unknown suffix.
std::vector<std::string> load_weights(const Model& model, const std::string& path,
                                      const LoadWeightsOptions& options = {});
inline std::vector<std::string> load_weights(const ModelHandle& model, const std::string& path,
                                             const LoadWeightsOptions& options = {}) {
  return load_weights(*model, path, options);
}

}  // namespace keel
