// Reads cells from configs.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/recurrent/rnn_cell.h>

namespace keel {

// Creates a cell from {"class_name", "config"}. Throws ValueError, naming `caller`, for a layer
// that is not a cell, and the exceptions of layers::deserialize().
LayerHandle<RNNCell> cell_from_config(const Config& config, const std::string& caller);
// Creates the cells of a list.
std::vector<LayerHandle<RNNCell>> cells_from_config(const Config& config,
                                                    const std::string& caller);

}  // namespace keel
