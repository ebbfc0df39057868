// The names of a model's outputs, which losses, metrics, labels and logs go by.
#pragma once

#include <string>
#include <vector>

#include <keel/layers/training/model.h>

namespace keel {

// One for each leaf of `outputs`, a result of the model: the keys of a dict (joined by '/'), else
// the names of the layers that make them, else "output_1", "output_2", ...; no two are alike.
std::vector<std::string> output_names(const Model& model, const Tensors& outputs);

}  // namespace keel
