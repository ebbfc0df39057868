// Weights in the layout of Keras's legacy files: a group for each layer, with the names of its
// weights, under one group, which whole-model files call "/model_weights" and files of weights
// alone "/".
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>
#include <keel/savedmodel/hdf5/hdf5_contents.h>

namespace keel {

// Keras 2 and 3 read a file of either; Keras checks no more than whether it is version 1. Readers
// here take the functions of Keras 2 for older versions (keras_dialect.h), so this is not one.
inline constexpr char kLegacyKerasVersion[] = "3.8.0";
inline constexpr char kLegacyBackend[] = "tensorflow";

void add_legacy_weights(const Model& model, const std::string& root, Hdf5Contents& out);

// How weights of a file find those of a model.
struct WeightMatching {
  bool by_name = false;        // layers by name, in place of one after the other
  bool skip_mismatch = false;  // leave out what does not fit, in place of an error
};

// Assigns the file's weights. Weighted layers are matched in order (or by name), and the weights
// in each in order; in a nested model by name where names are the same, because there the order
// depends on which of its layers are frozen. Nothing is assigned before all is known to fit.
// Returns what was left out, a line each; by name, also layers of the model that the file lacks.
// ValueError for weights that are missing, left over or of another shape than the model's: the
// error names layer, weight, what the model needs and what the file has. By name, also if no layer
// has the name of one in the file. NotImplementedError for convolutions of Keras's Theano backend,
// which stored kernels the other way round.
std::vector<std::string> read_legacy_weights(const Hdf5File& file, const std::string& root,
                                             const Model& model,
                                             const WeightMatching& matching = {});

}  // namespace keel
