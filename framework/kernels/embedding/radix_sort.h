// radix_sort: a stable sort by unsigned integer keys, in linear time.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace keel::kernels {

// Sorts n < 2^32 items stably by key(item), an unsigned number of at most `bits` bits. each(fn)
// calls fn(item) for every item in order. `a` and `b` have room for n items each. Returns `a` or
// `b`, whichever holds the result.
template <class Item, class Each, class Key>
Item* radix_sort(Item* a, Item* b, size_t n, int bits, const Each& each, const Key& key) {
  // Below this size a comparison sort is faster than counting.
  constexpr size_t kFew = 64;
  // The maximum digit width grows with the number of items, because clearing and scanning the
  // counters costs as much as moving a number of items.
  constexpr int kDigitBitsOfFew = 8, kDigitBits = 11, kMaxDigitBits = 12;
  constexpr size_t kMany = 1024, kVeryMany = 8192;
  constexpr int kMaxPasses = 64 / kDigitBitsOfFew;
  const int widest = n < kMany ? kDigitBitsOfFew : n < kVeryMany ? kDigitBits : kMaxDigitBits;
  const int passes = (bits + widest - 1) / widest;
  if (n < kFew || passes == 0) {
    Item* to = a;
    each([&](const Item& item) { *to++ = item; });
    std::ranges::stable_sort(a, a + n, {}, key);
    return a;
  }
  const int digit_bits = (bits + passes - 1) / passes;
  const size_t digits = size_t{1} << digit_bits;
  std::array<std::array<uint32_t, size_t{1} << kMaxDigitBits>, kMaxPasses> counts;
  for (int pass = 0; pass < passes; ++pass) std::fill_n(counts[pass].data(), digits, 0);
  // Counts the digits of all passes in the pass that produces the items.
  const auto make = [&]<int kPasses>() {
    Item* to = a;
    each([&](const Item& item) {
      *to++ = item;
      uint64_t rest = key(item);
      for (int pass = 0; pass < (kPasses > 0 ? kPasses : passes); ++pass, rest >>= digit_bits) {
        ++counts[pass][rest & (digits - 1)];
      }
    });
  };
  passes == 2 ? make.template operator()<2>() : make.template operator()<0>();
  for (int pass = 0; pass < passes; ++pass) {
    uint32_t* const places = counts[pass].data();
    const auto digit = [&, shift = pass * digit_bits](const Item& item) {
      return key(item) >> shift & (digits - 1);
    };
    // All items have the same digit, so this pass would not move any.
    if (places[digit(a[0])] == n) continue;
    uint32_t begin = 0;
    for (size_t d = 0; d < digits; ++d) begin += std::exchange(places[d], begin);
    for (size_t i = 0; i < n; ++i) b[places[digit(a[i])]++] = a[i];
    std::swap(a, b);
  }
  return a;
}

}  // namespace keel::kernels
