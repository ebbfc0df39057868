// Placeholders for the tensors among the arguments of an operator in a graph.
#pragma once

#include <cstdint>

#include <keel/framework/config/config.h>

namespace keel {

// Returns the placeholder of tensor `i` of a call, and the number of a placeholder, or -1.
Config tensor_placeholder(int64_t i);
int64_t placeholder_number(const Config& value);

}  // namespace keel
