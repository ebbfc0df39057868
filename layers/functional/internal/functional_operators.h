// Conversion of operators in Keras 3 graphs (x * y, keras.ops), which are not layers in Keras, to
// layers of this library.
#pragma once

#include <string>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor_like.h>

namespace keel {

// The layer that replaces an operator, and the inputs to call it with.
struct OperatorCall {
  Config layer;  // {"class_name", "config"}
  Tensors inputs;
};

// Returns true if an entry of a graph is such an operator. The test uses its module or, in legacy
// files that have none, its class.
bool is_operator(const Config& entry);

// Returns the layer call equivalent to the operator `class_name` with this config, called with
// `inputs`. Supported are arithmetic operators on tensors of the same rank or on a tensor and a
// constant, concatenation, reshaping, and activations. Throws NotImplementedError, prefixed with
// `caller` and naming the operator, for others.
OperatorCall layer_for_operator(const std::string& caller, const std::string& class_name,
                                const Config& config, const Tensors& inputs);

}  // namespace keel
