// Keras 3 weight files (.weights.h5), which .keras archives also contain.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>
#include <keel/savedmodel/keras/internal/legacy_weights.h>

namespace keel {

// Returns the weights, and the optimizer state if the model is compiled with an optimizer. Throws
// RuntimeError if the model has not been built.
Hdf5Contents keras_weights_contents(const Model& model);

// Assigns the weights of the file, and the optimizer state if the model is compiled with an
// optimizer and the file contains the state. Nothing is assigned until all values are known to fit.
// With `skip_mismatch`, returns one line for each skipped weight.
// Throws ValueError for weights that are missing, superfluous or of another shape than the model's,
// and for an optimizer state that does not fit.
std::vector<std::string> read_keras_weights(const Hdf5File& file, const Model& model,
                                            bool skip_mismatch = false);

}  // namespace keel
