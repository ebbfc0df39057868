// The state of an optimizer in Keras's legacy files.
#pragma once

#include "layers/model.h"
#include "savedmodel/hdf5_file.h"

namespace keel {

// Writes /optimizer_weights: the iterations, then the slots variable by variable, named as by
// Keras 2.15 ("iteration:0", "Adam/m/dense/kernel:0"). Slots that are missing are made first.
void write_optimizer_weights(Hdf5Writer& file, const Model& model);

// Reads them into the optimizer of a compiled model, from files of Keras 2 and 3; nothing happens
// if the file has none. ValueError, before anything changes, if they do not fit the optimizer and
// the model's trainable variables; IoError for a name whose meaning is not known.
void read_optimizer_weights(const Hdf5File& file, const Model& model);

}  // namespace keel
