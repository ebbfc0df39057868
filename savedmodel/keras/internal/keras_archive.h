// Keras 3's model archives (.keras): a zip of configuration and weights.
#pragma once

#include <string>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

struct KerasArchiveWriteOptions {
  SignatureSpecs signatures = {};  // that fit the model
};

// Writes configuration, weights, and if the model is compiled with an optimizer what compile() was
// given and the optimizer's state. The file appears whole or not at all. All processes of a job
// call it, and rank 0 writes.
// NotImplementedError if a part of the model has no config; RuntimeError if the model has no
// weights yet; IoError if the file cannot be written.
void write_keras_archive(const Model& model, const std::string& path,
                         const KerasArchiveWriteOptions& options = {});

struct KerasArchiveReadOptions {
  bool compile = false;   // as the file says, with the optimizer's state
  bool safe_mode = true;  // as LoadOptions has it (saved_model.h)
};

// IoError for a file that is no such archive, or damaged; otherwise what read_keras_h5 throws.
ModelHandle read_keras_archive(const std::string& path,
                               const KerasArchiveReadOptions& options = {});
// Its weights alone, into a model that is like the archive's. As read_keras_weights.
std::vector<std::string> read_archive_weights(const std::string& path, const Model& model,
                                              bool skip_mismatch);

}  // namespace keel
