// all_in_range: checks that ids are valid row numbers of a table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace keel::kernels {

// Returns true if all ids are in [0, rows). Checks several ids at once without a branch per id; on
// false, the caller searches for the invalid id.
inline bool all_in_range(std::span<const int64_t> ids, int64_t rows) {
  uint64_t largest = 0;
  for (const int64_t id : ids) largest = std::max(largest, static_cast<uint64_t>(id));
  return ids.empty() || largest < static_cast<uint64_t>(rows);
}

}  // namespace keel::kernels
