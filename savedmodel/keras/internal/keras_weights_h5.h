// Keras 3's weight files (.weights.h5), also found in .keras archives.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>
#include <keel/savedmodel/keras/internal/legacy_weights.h>

namespace keel {

// The weights, and the optimizer's state of a model that is compiled with one. RuntimeError if the
// model has no weights yet.
Hdf5Contents keras_weights_contents(const Model& model);

// Assigns the weights of the file, and the state of the optimizer if the model is compiled with
// one and the file has it. Nothing is assigned before all is known to fit; what is left out with
// skip_mismatch is returned, a line each.
// ValueError for weights that are missing, left over or of another shape than the model's, and for
// an optimizer's state that does not fit.
std::vector<std::string> read_keras_weights(const Hdf5File& file, const Model& model,
                                            bool skip_mismatch = false);

}  // namespace keel
