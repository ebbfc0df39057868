// Shapes as Keras's tables and pictures write them.
#pragma once

#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// "(None, 64)"; "(None,)" for one dimension.
std::string shape_text(const Shape& shape);
// The same of a leaf; "[(None, 2), (None, 3)]" and "{a: (None, 2)}" of structures.
std::string shape_text(const Specs& specs);

}  // namespace keel
