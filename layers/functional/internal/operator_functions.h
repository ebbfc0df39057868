// The functions that operators of graphs may compute.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <keel/layers/functional/internal/operator_arguments.h>

namespace keel {

// A function under its name in keras.ops.
struct OperatorFunction {
  std::vector<std::string> parameters;  // in positional order
  std::function<Tensors(const OperatorArguments&)> compute;
};

// Returns the function of keras.ops, or null if graphs cannot contain it.
const OperatorFunction* operator_function(const std::string& name);

// Returns the name of an argument that is not null and that the function has no parameter for, or
// "" if there is none.
std::string unknown_argument(const OperatorFunction& function, const Config& arguments);

// A call of a function of keras.ops.
struct FunctionCall {
  std::string function;
  Config arguments;  // by name
};

// Converts a call of TensorFlow: "math.reduce_mean" with arguments "input_tensor", "axis" and
// "keepdims". The first argument of the call has the name "0". An unknown function is returned
// unchanged, and so are arguments that the function has no parameter for, unless they have no
// effect.
FunctionCall from_tensorflow(const std::string& function, const Config& arguments);

}  // namespace keel
