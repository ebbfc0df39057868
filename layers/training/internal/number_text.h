// Numbers as text files have them.
#pragma once

#include <string>

namespace keel {

// With as many digits as it takes to read the same number back: "0.1", "1e-07", "nan".
std::string shortest_text(double value);

}  // namespace keel
