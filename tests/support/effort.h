// The length of long loops in tests. KEEL_TEST_EFFORT=0.1 runs a tenth of the cases. Without the
// variable, and in `./dev test full`, all cases run.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdlib>

namespace keel::testing_support {

// Returns the number of cases that a loop over `all` cases runs: at least one, and the same first
// cases whatever the fraction.
inline int64_t cases_to_run(int64_t all) {
  const char* const effort = std::getenv("KEEL_TEST_EFFORT");
  if (effort == nullptr) return all;
  const double fraction = std::clamp(std::strtod(effort, nullptr), 0.0, 1.0);
  return std::max<int64_t>(1, static_cast<int64_t>(fraction * static_cast<double>(all)));
}

}  // namespace keel::testing_support
