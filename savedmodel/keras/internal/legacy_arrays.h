// Converts the arrays of earlier versions of Keras to those of today's layers.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/model_weights.h>

namespace keel {

// The origin of a legacy file, as far as it matters for the form of arrays.
struct LegacyOrigin {
  bool keras1 = false;  // kernels depend on the order of dimensions, gates have separate arrays
  bool theano = false;  // Theano flips the kernels of convolutions when it applies them
};

// Reads the origin from the attributes of `root`. Files of Keras before 1.2 have no version;
// `weight_names` tell them by the names of their weights, such as "dense_1_W".
LegacyOrigin legacy_origin(const Hdf5File& file, const std::string& root,
                           const std::vector<std::string>& weight_names);

// An array for a weight of a layer.
struct StoredArray {
  std::string dataset;               // its place in the file, the first one if joined of several
  TensorSpec spec;                   // of the converted array
  std::optional<Tensor> value = {};  // if it was converted; otherwise the dataset is read later
};

// Returns the arrays of a layer from the datasets that hold its weights, in the order of the
// weights:
// - an LSTM with 12 arrays and a GRU with 9, one for each gate, have them joined;
// - kernels of Keras 1 are transposed to [window ..., inputs, outputs];
// - kernels of convolutions from Theano are flipped.
// All others are returned as they are.
std::vector<StoredArray> stored_arrays(const Hdf5File& file, const LegacyOrigin& origin,
                                       const LayerWeights& layer,
                                       const std::vector<std::string>& datasets);

}  // namespace keel
