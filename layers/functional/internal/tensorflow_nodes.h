// Operators in graphs of tf.keras in TensorFlow 2.0 to 2.3, which files hold as nodes of
// TensorFlow's graphs.
#pragma once

#include <keel/layers/functional/internal/operator_functions.h>

namespace keel {

// Converts the config of a TensorFlowOpLayer, {"node_def": JSON of a NodeDef, "constants": {input:
// value}}, that is called with `tensors` tensors. They are the inputs without a constant, in order.
// An unknown op is returned as the function "" with its name as the argument "op". Throws
// ValueError for a config without a node_def, and for inputs that are missing.
FunctionCall from_tensorflow_node(const Config& config, int64_t tensors);

}  // namespace keel
