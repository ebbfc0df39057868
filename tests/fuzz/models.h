// Models that the fuzz programs' inputs are made of and loaded into.
#pragma once

#include <vector>

#include <keel/framework/config/config.h>
#include <keel/layers/training/model.h>
#include <keel/layers/utils/feature_space.h>

namespace keel::fuzz {

// Built, one for all calls: two or three weights, since the time that one takes is that of each
// input. The first one is compiled.
const ModelHandle& small_model();
const ModelHandle& small_graph();

// Trained, with a table of string ids and one of integers that admits ids by their counts.
const ModelHandle& small_dynamic();

// Returns the configs of models that consist of an input and one layer of many kinds.
std::vector<Config> one_layer_configs();
// Returns models of this kind whose layers have weights: cells in an RNN, convolutions, embeddings
// and vocabularies.
std::vector<ModelHandle> one_layer_models();
// Returns the configs of graphs with operators, which are not layers in Keras.
std::vector<Config> graph_configs();

// An adapted space with a preprocessor of each kind of state: weights, a vocabulary and none.
const utils::FeatureSpace& small_space();

}  // namespace keel::fuzz
