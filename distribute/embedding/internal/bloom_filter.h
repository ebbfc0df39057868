// BloomFilter: a set of rows that may hold a few more than were added.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace keel::distribute {

// Bits of hashed rows, a row in 200 too many where tables are large and none where they are not.
// Keeps its memory from use to use; never as much as a bit for each row of a large table.
class BloomFilter {
 public:
  // Empties it, for `count` rows of a table of `rows`: takes as long as some of them do to add.
  void start(int64_t count, int64_t rows) {
    constexpr int64_t kBitsPerRow = 256, kLeast = int64_t{1} << 12;
    const auto bits = static_cast<uint64_t>(
        std::max(kLeast, std::min(rows, std::max<int64_t>(count, 1) * kBitsPerRow)));
    const int width = std::bit_width(bits - 1);
    shift_ = 64 - width;
    constexpr uint64_t kGolden = 0x9e3779b97f4a7c15;
    factor_ = static_cast<uint64_t>(rows) <= uint64_t{1} << width ? uint64_t{1} << shift_ : kGolden;
    words_.assign((size_t{1} << width) / 64, 0);
  }
  void add(int64_t row) {
    const uint64_t at = bit_of(row);
    words_[at / 64] |= uint64_t{1} << at % 64;
  }
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
