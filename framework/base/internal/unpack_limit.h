// How much a compressed file may unpack to.
#pragma once

#include <algorithm>
#include <cstdint>

namespace keel {

// Deflate shrinks runs of one byte by up to 1032, so that a file of megabytes can ask for
// gigabytes. Weights, vocabularies and examples shrink by less than 10; a file that shrinks by more
// than this is refused before its bytes take memory or disk.
inline constexpr uint64_t kMaxUnpackRatio = 64;
inline constexpr uint64_t kAlwaysUnpacked = uint64_t{64} << 20;

// The most bytes that `stored` bytes of a compressed file may become.
constexpr uint64_t most_unpacked_bytes(uint64_t stored) {
  return std::max(kAlwaysUnpacked,
                  std::min(stored, UINT64_MAX / kMaxUnpackRatio) * kMaxUnpackRatio);
}

}  // namespace keel
