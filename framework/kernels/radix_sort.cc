#include "framework/kernels/radix_sort.h"

#include <algorithm>
#include <array>
#include <utility>

namespace keel::kernels {
namespace {

// Below this, comparing is faster than counting.
constexpr size_t kFew = 64;
constexpr int kMaxDigitBits = 11;
// The largest digit for fewer words than this: their counts cost as much as the words.
constexpr size_t kMany = 1024;
constexpr int kDigitBitsOfFew = 8;
constexpr int kMaxPasses = 8;

}  // namespace

uint64_t* radix_sort(uint64_t* words, uint64_t* spare, size_t n, int first_bit, int bits) {
  const uint64_t mask = bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  if (n < kFew || bits > kMaxPasses * kDigitBitsOfFew) {
    std::ranges::stable_sort(words, words + n, {},
                             [&](uint64_t word) { return word >> first_bit & mask; });
    return words;
  }
  const int widest = n < kMany ? kDigitBitsOfFew : kMaxDigitBits;
  const int passes = (bits + widest - 1) / widest;
  if (passes == 0) return words;
  const int digit_bits = (bits + passes - 1) / passes;
  const size_t digits = size_t{1} << digit_bits;
  // All counts in one reading of the words.
  std::array<std::array<uint32_t, size_t{1} << kMaxDigitBits>, kMaxPasses> counts;
  for (int pass = 0; pass < passes; ++pass) std::fill_n(counts[pass].data(), digits, 0);
  for (size_t i = 0; i < n; ++i) {
    uint64_t key = words[i] >> first_bit & mask;
    for (int pass = 0; pass < passes; ++pass, key >>= digit_bits) {
      ++counts[pass][key & (digits - 1)];
    }
  }
  for (int pass = 0; pass < passes; ++pass) {
    uint32_t* const next = counts[pass].data();
    const int shift = first_bit + pass * digit_bits;
    // The last digit has fewer bits where the others share them evenly.
    const uint64_t of_digit = mask >> pass * digit_bits & (digits - 1);
    if (next[words[0] >> shift & of_digit] == n) continue;
    uint32_t begin = 0;
    for (size_t d = 0; d < digits; ++d) begin += std::exchange(next[d], begin);
    for (size_t i = 0; i < n; ++i) spare[next[words[i] >> shift & of_digit]++] = words[i];
    std::swap(words, spare);
  }
  return words;
}

}  // namespace keel::kernels
