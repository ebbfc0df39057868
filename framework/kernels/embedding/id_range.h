// Whether ids lie in their table.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace keel::kernels {

// True if all are in [0, rows). Looks at every id without a branch for each, several at once; who
// is told no looks for the bad one.
inline bool all_in_range(std::span<const int64_t> ids, int64_t rows) {
  uint64_t largest = 0;
  for (const int64_t id : ids) largest = std::max(largest, static_cast<uint64_t>(id));
  return ids.empty() || largest < static_cast<uint64_t>(rows);
}

}  // namespace keel::kernels
