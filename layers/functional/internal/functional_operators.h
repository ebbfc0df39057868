// Operators in the graphs of Keras 3 (x * y, keras.ops), which are no layers there, as layers here.
#pragma once

#include <string>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// How a layer is called in place of an operator.
struct OperatorCall {
  Config layer;  // {"class_name", "config"}
  Tensors inputs;
};

// Whether an entry of a graph is such an operator: by its module, or in legacy files, which have
// none, by the class.
bool is_operator(const Config& entry);

// The layer for the operator `class_name` of this config, called with `inputs`: sums, products and
// the like of tensors of one rank, or of a tensor and a constant; activations; shapes.
// NotImplementedError, naming `caller` and the operator, for another one.
OperatorCall layer_for_operator(const std::string& caller, const std::string& class_name,
                                const Config& config, const Tensors& inputs);

}  // namespace keel
