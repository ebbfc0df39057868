// CountMinSketch: approximate counts of keys in memory of fixed size (Cormode and Muthukrishnan
// 2005).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace keel::distribute {

// Consists of one part for each key shard. A part has four rows of `width` 8-bit cells, which
// saturate at 255. A key uses one cell of each row, and its count is the minimum of the four.
// Without halving, a count is never below the number of occurrences, up to 255.
class CountMinSketch {
 public:
  explicit CountMinSketch(int64_t width);

  // Returns the count of the key with this hash.
  int64_t count(uint64_t hash) const;
  // Adds occurrences to the count.
  void add(uint64_t hash, int64_t occurrences);
  // Halves all cells, rounding down.
  void halve();

  // The cells, by shard and row.
  const std::vector<uint8_t>& cells() const { return cells_; }
  // Replaces the cells. `cells` must have the same size.
  void restore(std::vector<uint8_t> cells) { cells_ = std::move(cells); }

 private:
  static constexpr int kRows = 4;
  size_t cell(uint64_t hash, int row) const;

  int64_t width_;
  std::vector<uint8_t> cells_;
};

}  // namespace keel::distribute
