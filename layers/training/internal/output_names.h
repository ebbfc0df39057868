// The names of a model's outputs in losses, metrics, labels and logs.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>

namespace keel {

// Returns a unique name for each leaf of `outputs`, a result of the model: the keys of a dict
// (joined by '/'), otherwise the names of the layers that produce them, otherwise "output_1",
// "output_2", ...
std::vector<std::string> output_names(const Model& model, const Tensors& outputs);

}  // namespace keel
