// Weights in the layout of Keras's legacy files: one group per layer, with the names of its
// weights, under a root group. The root is "/model_weights" in whole-model files and "/" in weights
// files.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>

namespace keel {

// Written as keras_version. Keras 2 and 3 read files of either version; Keras only checks whether
// it is version 1. The readers in this library apply the functions of Keras 2 to older versions
// (keras_dialect.h), so the version must be 3.
inline constexpr char kLegacyKerasVersion[] = "3.8.0";
inline constexpr char kLegacyBackend[] = "tensorflow";

// Adds the weights of a model under `root`.
void add_legacy_weights(const Model& model, const std::string& root, Hdf5Contents& out);

// Options for matching the weights of a file with those of a model.
struct WeightMatching {
  bool by_name = false;        // match layers by name instead of by order
  bool skip_mismatch = false;  // skip weights that do not fit instead of throwing
};

// Assigns the file's weights. Layers with weights are matched in order (or by name), and the
// weights of each layer in order. In a nested model, weights are matched by name if the names are
// equal, because their order depends on which layers are frozen. Nothing is assigned until all
// weights are known to fit. Returns one line for each skipped weight and, with `by_name`, for each
// layer of the model that the file lacks.
// Throws ValueError for weights that are missing, superfluous or of another shape than the model's:
// the error names the layer, the weight, the required and the stored shape. With `by_name`, also
// throws ValueError if no layer has a name of the file. Throws NotImplementedError for convolutions
// of Keras's Theano backend, which stored flipped kernels.
std::vector<std::string> read_legacy_weights(const Hdf5File& file, const std::string& root,
                                             const Model& model,
                                             const WeightMatching& matching = {});

}  // namespace keel
