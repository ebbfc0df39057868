// BloomFilter: an approximate set of rows, which may report a few rows that were not added.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace keel::distribute {

// Stores one bit per hashed row. About one row in 200 is a false positive in large tables, none in
// tables small enough to have a bit per row. The memory is reused. It is 4096 bits or less than two
// bits per row of the table, whichever is more.
class BloomFilter {
 public:
  // Empties the set and sizes it for `count` rows of a table of `rows` rows. Takes as long as
  // adding a few of these rows.
  void start(int64_t count, int64_t rows) {
    constexpr int64_t kBitsPerRow = 256, kLeast = int64_t{1} << 12;
    const auto bits = static_cast<uint64_t>(
        std::max(kLeast, std::min(rows, std::max<int64_t>(count, 1) * kBitsPerRow)));
    const int width = std::bit_width(bits - 1);
    shift_ = 64 - width;
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio
    // If every row has its own bit, the factor only cancels the shift and there are no
    // collisions. Otherwise rows are hashed by multiplication.
    factor_ = static_cast<uint64_t>(rows) <= uint64_t{1} << width ? uint64_t{1} << shift_ : kGolden;
    words_.assign((size_t{1} << width) / 64, 0);
  }
  // Adds a row of the table.
  void add(int64_t row) {
    const uint64_t at = bit_of(row);
    words_[at / 64] |= uint64_t{1} << at % 64;
  }
  // Returns false only if `row` was not added.
  bool may_hold(int64_t row) const {
    const uint64_t at = bit_of(row);
    return (words_[at / 64] >> at % 64 & 1) != 0;
  }

 private:
  uint64_t bit_of(int64_t row) const { return static_cast<uint64_t>(row) * factor_ >> shift_; }

  int shift_ = 52;
  uint64_t factor_ = 0;
  std::vector<uint64_t> words_;
};

}  // namespace keel::distribute
