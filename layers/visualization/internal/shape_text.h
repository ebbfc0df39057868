// Conversion of shapes to text in the form of Keras's summaries and plots.
#pragma once

#include <string>

#include <keel/framework/tensor_like.h>

namespace keel {

// Returns "(None, 64)", or "(None,)" for one dimension.
std::string shape_text(const Shape& shape);
// Returns the shape of a leaf, or "[(None, 2), (None, 3)]" and "{a: (None, 2)}" for structures.
std::string shape_text(const Specs& specs);

}  // namespace keel
