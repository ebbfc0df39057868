// Reads and writes weights in the layout of Keras's legacy files: a group for each layer with the
// names of its weights. The groups are in "/model_weights" in files of whole models, and in "/" in
// files of weights.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>
#include <keel/savedmodel/keras/min_count.h>

namespace keel {

// The version that is written. Keras only checks whether it is 1. For files of older versions, this
// library uses the functions of Keras 2 (keras_dialect.h), so this must be a version of Keras 3.
inline constexpr char kLegacyKerasVersion[] = "3.8.0";
inline constexpr char kLegacyBackend[] = "tensorflow";

// Adds the weights of a model to `out` under the group `root`.
void add_legacy_weights(const Model& model, const std::string& root, Hdf5Contents& out,
                        const MinCount& min_count = {});

// Selects how the weights of a file are matched with those of a model.
struct WeightMatching {
  bool by_name = false;        // match layers by name instead of by order
  bool skip_mismatch = false;  // skip weights that do not fit instead of throwing
};

// Assigns the weights of a file. Layers with weights are matched by order or by name, and the
// weights of a layer by order. In a nested model, weights with equal names are matched by name,
// because their order depends on which of its layers are frozen. Arrays of Keras 1 and of Keras's
// Theano backend are converted (legacy_arrays.h). Everything is checked before the
// first assignment. Returns one line for each weight that was skipped and, with by_name, for each
// layer that the file does not have.
//
// Throws ValueError, naming layer, weight and both shapes, if weights are missing, left over or of
// another shape. With by_name, throws ValueError if no layer of the file matches.
std::vector<std::string> read_legacy_weights(const Hdf5File& file, const std::string& root,
                                             const Model& model,
                                             const WeightMatching& matching = {});

}  // namespace keel
