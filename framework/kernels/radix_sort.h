// Sorting by keys of whole numbers, in linear time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace keel::kernels {

// Sorts n < 2^32 items stably by key(item), an unsigned number of at most `bits` bits, through
// `spare`, which has room for as many. Returns where the result stands, `items` or `spare`.
template <class Item, class Key>
Item* radix_sort(Item* items, Item* spare, size_t n, int bits, const Key& key) {
  // Below this, comparing is faster than counting.
  constexpr size_t kFew = 64;
  constexpr int kMaxDigitBits = 11;
  // The largest digit for fewer items than this: their counts cost as much as the items.
  constexpr size_t kMany = 1024;
  constexpr int kDigitBitsOfFew = 8;
  constexpr int kMaxPasses = 64 / kDigitBitsOfFew;
  if (n < kFew) {
    std::ranges::stable_sort(items, items + n, {}, key);
    return items;
  }
  const int widest = n < kMany ? kDigitBitsOfFew : kMaxDigitBits;
  const int passes = (bits + widest - 1) / widest;
  if (passes == 0) return items;
  const int digit_bits = (bits + passes - 1) / passes;
  const size_t digits = size_t{1} << digit_bits;
  // All counts in one reading of the items.
  std::array<std::array<uint32_t, size_t{1} << kMaxDigitBits>, kMaxPasses> counts;
  for (int pass = 0; pass < passes; ++pass) std::fill_n(counts[pass].data(), digits, 0);
  for (size_t i = 0; i < n; ++i) {
    uint64_t rest = key(items[i]);
    for (int pass = 0; pass < passes; ++pass, rest >>= digit_bits) {
      ++counts[pass][rest & (digits - 1)];
    }
  }
  for (int pass = 0; pass < passes; ++pass) {
    uint32_t* const next = counts[pass].data();
    const auto digit = [&, shift = pass * digit_bits](const Item& item) {
      return key(item) >> shift & (digits - 1);
    };
    if (next[digit(items[0])] == n) continue;
    uint32_t begin = 0;
    for (size_t d = 0; d < digits; ++d) begin += std::exchange(next[d], begin);
    for (size_t i = 0; i < n; ++i) spare[next[digit(items[i])]++] = items[i];
    std::swap(items, spare);
  }
  return items;
}

}  // namespace keel::kernels
