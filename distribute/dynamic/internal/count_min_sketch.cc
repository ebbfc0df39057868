#include <keel/distribute/dynamic/internal/count_min_sketch.h>

#include <algorithm>

#include <keel/distribute/dynamic/internal/key_functions.h>

namespace keel::distribute {
namespace {

constexpr int64_t kMostInCell = 255;

}  // namespace

CountMinSketch::CountMinSketch(int64_t width) : width_(width), cells_(kKeyShards * kRows * width) {}

size_t CountMinSketch::cell(uint64_t hash, int row) const {
  const uint64_t mixed = kernels::mixed_key(hash, static_cast<uint64_t>(row) + 1);
  const auto column = static_cast<int64_t>(high_product(mixed, static_cast<uint64_t>(width_)));
  return static_cast<size_t>((int64_t{key_shard(hash)} * kRows + row) * width_ + column);
}

int64_t CountMinSketch::count(uint64_t hash) const {
  int64_t out = kMostInCell;
  for (int row = 0; row < kRows; ++row) out = std::min<int64_t>(out, cells_[cell(hash, row)]);
  return out;
}

void CountMinSketch::add(uint64_t hash, int64_t occurrences) {
  for (int row = 0; row < kRows; ++row) {
    uint8_t& of_row = cells_[cell(hash, row)];
    of_row = static_cast<uint8_t>(occurrences < kMostInCell - of_row ? of_row + occurrences
                                                                     : kMostInCell);
  }
}

void CountMinSketch::halve() {
  for (uint8_t& cell : cells_) cell /= 2;
}

}  // namespace keel::distribute
