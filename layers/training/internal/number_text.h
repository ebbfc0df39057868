// Conversion of numbers to text for files.
#pragma once

#include <string>

namespace keel {

// Returns the shortest text that reads back as the same number: "0.1", "1e-07", "nan".
std::string shortest_text(double value);

}  // namespace keel
