// Reads and writes the weight files of Keras 3 (.weights.h5), which .keras archives contain too.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>
#include <keel/savedmodel/keras/internal/legacy_weights.h>
#include <keel/savedmodel/keras/min_count.h>

namespace keel {

// Adds the idf_weights of a lookup layer or TextVectorization, which have a name instead of a
// number, to the group of the layer.
void add_idf_weights(const Layer& layer, const std::string& group, Hdf5Contents& out);

// Returns the contents of a weight file: the weights and, if the model is compiled with an
// optimizer, the optimizer's state. Tables for unbounded ids are in groups of their names. Throws
// RuntimeError if the model has no weights yet.
Hdf5Contents keras_weights_contents(const Model& model, const MinCount& min_count = {});

// Assigns the weights of the file and, if the model is compiled with an optimizer and the file has
// its state, that state. Everything is checked before the first assignment. Returns one line for
// each weight that skip_mismatch has skipped. Throws ValueError if weights are missing, left over
// or of another shape, and if the optimizer's state does not fit.
std::vector<std::string> read_keras_weights(const Hdf5File& file, const Model& model,
                                            bool skip_mismatch = false);

}  // namespace keel
