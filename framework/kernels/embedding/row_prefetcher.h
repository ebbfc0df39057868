// RowPrefetcher: the rows that a loop will read are asked for some way ahead of their turn.
#pragma once

#include <algorithm>
#include <cstdint>

#include <keel/framework/kernels/embedding/prefetch_row.h>

namespace keel::kernels {

// Of a loop over rows at the positions [begin, end), of kRowBytes or, if that is 0, of row_bytes.
// ask.template operator()<Into>(i) asks for the row of position i.
template <bool kIntoL2, int64_t kRowBytes, class Ask>
class RowPrefetcher {
 public:
  RowPrefetcher(const Ask& ask, int64_t row_bytes, int64_t begin, int64_t end)
      : ask_(ask), row_bytes_(row_bytes), end_(end) {
    const int64_t soon = std::min(end, begin + near());
    for (int64_t i = begin; i < soon; ++i) ask_.template operator()<Into::kL1>(i);
    for (int64_t i = soon; i < std::min(end, begin + far()); ++i) ask_.template operator()<kFar>(i);
  }

  // Now it is the turn of position i.
  void pass(int64_t i) const {
    if (i + far() < end_) ask_.template operator()<kFar>(i + far());
    if (near() != 0 && i + near() < end_) ask_.template operator()<Into::kL1>(i + near());
  }

 private:
  static constexpr Into kFar = kIntoL2 ? Into::kL2 : Into::kL1;
  int64_t row_bytes() const { return kRowBytes != 0 ? kRowBytes : row_bytes_; }
  // Into the L1 cache as many bytes in flight for short rows as for long ones; the L2 cache takes
  // what it can.
  int64_t far() const {
    if (kIntoL2) return 128;
    return row_bytes() >= 256 ? 32 : row_bytes() >= 128 ? 64 : 96;
  }
  // From the L2 cache on: a row of one line comes as soon as it is read, the lines of longer ones
  // would come one after the other.
  int64_t near() const { return kIntoL2 && row_bytes() > 64 ? 8 : 0; }

  const Ask ask_;
  const int64_t row_bytes_, end_;
};

}  // namespace keel::kernels
