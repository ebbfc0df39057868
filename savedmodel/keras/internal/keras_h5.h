// Keras's legacy whole-model file (.h5): configuration and weights, in the form that Keras 2 and 3
// and this library read.
#pragma once

#include <string>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

struct KerasH5WriteOptions {
  // The state of the optimizer of a compiled model, as Keras 2.15 writes it. Keras 3 loads such a
  // file, but cannot go on training.
  bool optimizer_weights = false;
  SignatureSpecs signatures = {};  // that fit the model
};

// What compile() was given is written if the model is compiled with an optimizer. The file appears
// whole or not at all. In a job of several processes rank 0 writes it, and all of them call this:
// tables come from all, each of them whole in every process for a moment.
// NotImplementedError if a part of the model has no config (get_config says which); RuntimeError
// if the model has no weights yet; IoError if the file cannot be written.
void write_keras_h5(const Model& model, const std::string& path,
                    const KerasH5WriteOptions& options = {});

struct KerasH5ReadOptions {
  bool compile = false;   // as the file says, with the optimizer's state if the file has it
  bool safe_mode = true;  // as LoadOptions has it (saved_model.h)
};

// A model with the file's weights. Weighted layers are matched in order, and so are the weights in
// each; names do not count. Nothing is assigned before all of them are known to fit.
// IoError for a file that is not such a one, or damaged; ValueError for a class or config key that
// is not known, NotImplementedError for one that is not offered; ValueError if weights are missing,
// left over or of another shape than the model's: the error names layer, weight, what the model
// needs and what the file has.
ModelHandle read_keras_h5(const std::string& path, const KerasH5ReadOptions& options = {});

}  // namespace keel
