// Asking for memory before it is needed.
#pragma once

#include <algorithm>
#include <cstdint>

namespace keel::kernels {

// Asks for a row, at least for its beginning: the hardware follows longer rows by itself.
template <bool kToWrite>
inline void prefetch_row(const void* row, int64_t bytes) {
  constexpr int64_t kLine = 64, kMostBytes = 512;
  asm volatile("");  // GCC leaves out calls of functions that do nothing but ask
  const char* const from = static_cast<const char*>(row);
  const int64_t size = std::min(bytes, kMostBytes);
  for (int64_t at = 0; at < size; at += kLine) __builtin_prefetch(from + at, kToWrite ? 1 : 0);
  if (size % kLine != 0) __builtin_prefetch(from + size - 1, kToWrite ? 1 : 0);
}

// Rows of floats that are about to be written: as many lines in flight for short ones as for long
// ones.
inline int64_t written_rows_ahead(int64_t dim) {
  return std::clamp<int64_t>(1024 / std::max<int64_t>(dim, 1), 8, 64);
}

}  // namespace keel::kernels
