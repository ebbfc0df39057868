// Asking for memory before it is needed.
#pragma once

#include <algorithm>
#include <cstdint>

#include <keel/framework/kernels/processor.h>

namespace keel::kernels {

enum class Into { kL1, kL1ToWrite, kL2 };

// Asks for a row, at least for its beginning: the hardware follows longer rows by itself.
template <Into kInto, int64_t kMostBytes = 512>
inline void prefetch_row(const void* row, int64_t bytes) {
  constexpr int64_t kLine = 64;
  asm volatile("");  // GCC leaves out calls of functions that do nothing but ask
  const auto ask = [from = static_cast<const char*>(row)](int64_t at) {
    __builtin_prefetch(from + at, kInto == Into::kL1ToWrite ? 1 : 0, kInto == Into::kL2 ? 2 : 3);
  };
  const int64_t size = std::min(bytes, kMostBytes);
  for (int64_t at = 0; at < size; at += kLine) ask(at);
  if (size % kLine != 0) ask(size - 1);
}

// Asks for a row that will be read.
inline void prefetch_row_to_read(const void* row, int64_t bytes) {
  kAsksIntoL2 ? prefetch_row<Into::kL2>(row, bytes) : prefetch_row<Into::kL1>(row, bytes);
}

// Asks for a row that will be read and written, perhaps with its slots beside it. Into the L2 cache
// as if to read: no other processor has most of the rows, and what a processor has alone it may
// write.
inline void prefetch_row_to_write(const void* row, int64_t bytes) {
  constexpr int64_t kMostBytes = 2048;
  kAsksIntoL2 ? prefetch_row<Into::kL2, kMostBytes>(row, bytes)
              : prefetch_row<Into::kL1ToWrite, kMostBytes>(row, bytes);
}

// Rows of floats that are about to be written: into the L1 cache as many lines in flight for short
// ones as for long ones.
inline int64_t written_rows_ahead(int64_t dim) {
  return kAsksIntoL2 ? 64 : std::clamp<int64_t>(1024 / std::max<int64_t>(dim, 1), 8, 64);
}

}  // namespace keel::kernels
