// Keras 3 model archives (.keras): a zip file with configuration and weights.
#pragma once

#include <string>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

// Options of write_keras_archive().
struct KerasArchiveWriteOptions {
  SignatureSpecs signatures = {};  // must fit the model
};

// Writes the configuration and the weights. If the model is compiled with an optimizer, also writes
// the arguments of compile() and the optimizer state. The file is either complete or absent. All
// processes of a job must call this function; rank 0 writes.
// Throws NotImplementedError if a part of the model has no config, RuntimeError if the model has
// not been built, and IoError if the file cannot be written.
void write_keras_archive(const Model& model, const std::string& path,
                         const KerasArchiveWriteOptions& options = {});

// Options of read_keras_archive().
struct KerasArchiveReadOptions {
  bool compile = false;   // compile as stored in the file, with the optimizer state
  bool safe_mode = true;  // see LoadOptions (saved_model.h)
};

// Reads a model. Throws IoError if the file is not a Keras archive or is damaged, and the other
// errors of read_keras_h5.
ModelHandle read_keras_archive(const std::string& path,
                               const KerasArchiveReadOptions& options = {});
// Reads only the weights of an archive into a model of the same structure. See read_keras_weights.
std::vector<std::string> read_archive_weights(const std::string& path, const Model& model,
                                              bool skip_mismatch);

}  // namespace keel
