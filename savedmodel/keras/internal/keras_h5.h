// Keras's legacy whole-model files (.h5): configuration and weights, in a form that Keras 2, Keras
// 3 and this library read.
#pragma once

#include <string>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/keras/signature.h>

namespace keel {

// Options of write_keras_h5().
struct KerasH5WriteOptions {
  // Writes the optimizer state of a compiled model in the format of Keras 2.15. Keras 3 loads such
  // a file but cannot continue the training.
  bool optimizer_weights = false;
  SignatureSpecs signatures = {};  // must fit the model
};

// Writes a model. If the model is compiled with an optimizer, also writes the arguments of
// compile(). The file is either complete or absent. In a job of several processes, rank 0 writes
// the file, and all processes must call this function because each contributes its rows of the
// tables. Every process temporarily holds each table as a whole.
// Throws NotImplementedError if a part of the model has no config (get_config names it),
// RuntimeError if the model has not been built, and IoError if the file cannot be written.
void write_keras_h5(const Model& model, const std::string& path,
                    const KerasH5WriteOptions& options = {});

// Options of read_keras_h5().
struct KerasH5ReadOptions {
  bool compile =
      false;  // compile as stored in the file, with the optimizer state if the file has it
  bool safe_mode = true;  // see LoadOptions (saved_model.h)
};

// Reads a model with its weights. Layers with weights are matched in order, and so are the weights
// of each layer; names are ignored. Nothing is assigned until all weights are known to fit.
// Throws IoError if the file is not a Keras model or is damaged, ValueError for an unknown class or
// config key, and NotImplementedError for an unsupported one. Throws ValueError if weights are
// missing, superfluous or of another shape than the model's: the error names the layer, the weight,
// the required and the stored shape.
ModelHandle read_keras_h5(const std::string& path, const KerasH5ReadOptions& options = {});

}  // namespace keel
