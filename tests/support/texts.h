// Counts parts of texts.
#pragma once

#include <cstddef>
#include <string>

namespace keel::testing_support {

// Returns how often `part` occurs in `text`. Occurrences may overlap.
size_t count_of(const std::string& text, const std::string& part);

}  // namespace keel::testing_support
