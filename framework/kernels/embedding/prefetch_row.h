// Prefetches rows of a table into the caches.
#pragma once

#include <algorithm>
#include <cstdint>

#include <keel/framework/kernels/processor.h>

namespace keel::kernels {

// The target of a prefetch: the L1 cache for reading, the L1 cache for writing, or the L2 cache.
enum class Into { kL1, kL1ToWrite, kL2 };

// Prefetches a row of `bytes` bytes, at most its first kMostBytes: the hardware prefetcher follows
// longer rows by itself.
template <Into kInto, int64_t kMostBytes = 512>
inline void prefetch_row(const void* row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  asm volatile("");  // without it GCC removes calls of functions that only prefetch
  const auto prefetch_line = [from = static_cast<const char*>(row)](int64_t at) {
    __builtin_prefetch(from + at, kInto == Into::kL1ToWrite ? 1 : 0, kInto == Into::kL2 ? 2 : 3);
  };
  const int64_t size = std::min(bytes, kMostBytes);
  for (int64_t at = 0; at < size; at += kLine) prefetch_line(at);
  if (size % kLine != 0) prefetch_line(size - 1);
}

// Prefetches a row that will be read.
inline void prefetch_row_to_read(const void* row, int64_t bytes) {
  kPrefetchesIntoL2 ? prefetch_row<Into::kL2>(row, bytes) : prefetch_row<Into::kL1>(row, bytes);
}

// Prefetches a row that will be read and written, possibly with its slots next to it. The prefetch
// into the L2 cache is one for reading: most rows are in no other core's cache, so the line arrives
// in exclusive state and can be written without another request.
inline void prefetch_row_to_write(const void* row, int64_t bytes) {
  constexpr int64_t kMostBytes = 2048;
  kPrefetchesIntoL2 ? prefetch_row<Into::kL2, kMostBytes>(row, bytes)
                    : prefetch_row<Into::kL1ToWrite, kMostBytes>(row, bytes);
}

// Returns how many rows of `dim` floats to prefetch ahead of a row that is written. For the L1
// cache the number of lines in flight is about the same for short and long rows.
inline int64_t written_rows_ahead(int64_t dim) {
  return kPrefetchesIntoL2 ? 64 : std::clamp<int64_t>(1024 / std::max<int64_t>(dim, 1), 8, 64);
}

}  // namespace keel::kernels
