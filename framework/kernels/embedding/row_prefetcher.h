// RowPrefetcher: prefetches the rows that a loop reads, a fixed distance ahead.
#pragma once

#include <algorithm>
#include <cstdint>

#include <keel/framework/kernels/embedding/prefetch_row.h>

namespace keel::kernels {

// Serves a loop over the positions [begin, end), whose rows have kRowBytes bytes or, if that is 0,
// `row_bytes` bytes. ask.template operator()<Into>(i) prefetches the row of position i. The
// constructor prefetches the first rows.
template <bool kIntoL2, int64_t kRowBytes, class Ask>
class RowPrefetcher {
 public:
  RowPrefetcher(const Ask& ask, int64_t row_bytes, int64_t begin, int64_t end)
      : ask_(ask), row_bytes_(row_bytes), end_(end) {
    const int64_t soon = std::min(end, begin + near());
    for (int64_t i = begin; i < soon; ++i) ask_.template operator()<Into::kL1>(i);
    for (int64_t i = soon; i < std::min(end, begin + far()); ++i) ask_.template operator()<kFar>(i);
  }

  // Call this before the loop reads position i; prefetches the rows at the prefetch distance.
  void pass(int64_t i) const {
    if (i + far() < end_) ask_.template operator()<kFar>(i + far());
    if (near() != 0 && i + near() < end_) ask_.template operator()<Into::kL1>(i + near());
  }

 private:
  static constexpr Into kFar = kIntoL2 ? Into::kL2 : Into::kL1;
  int64_t row_bytes() const { return kRowBytes != 0 ? kRowBytes : row_bytes_; }
  // The distance of the first prefetch. For the L1 cache the number of bytes in flight is about the
  // same for short and long rows; the L2 cache has no such limit in practice.
  int64_t far() const {
    if (kIntoL2) return 128;
    return row_bytes() >= 256 ? 32 : row_bytes() >= 128 ? 64 : 96;
  }
  // The distance of the second prefetch, from the L2 cache to the L1 cache; 0: none. A row of one
  // line arrives as soon as it is read, but the lines of a longer row would arrive one after the
  // other.
  int64_t near() const { return kIntoL2 && row_bytes() > 64 ? 8 : 0; }

  const Ask ask_;
  const int64_t row_bytes_, end_;
};

}  // namespace keel::kernels
