// The maximum size to which a compressed file may expand.
#pragma once

#include <algorithm>
#include <cstdint>

namespace keel {

// Deflate compresses runs of one byte by a factor of up to 1032, so that a file of megabytes can
// expand to gigabytes. Weights, vocabularies and examples compress by a factor of less than 10. A
// file that exceeds these limits is rejected before its contents take memory or disk: it may expand
// to 64 times its size, or to 64 MiB if that is more.
inline constexpr uint64_t kMaxUnpackRatio = 64;
inline constexpr uint64_t kAlwaysUnpacked = uint64_t{64} << 20;

// Returns the maximum number of bytes that a compressed file of `stored` bytes may expand to.
constexpr uint64_t most_unpacked_bytes(uint64_t stored) {
  return std::max(kAlwaysUnpacked,
                  std::min(stored, UINT64_MAX / kMaxUnpackRatio) * kMaxUnpackRatio);
}

}  // namespace keel
