// Sorting words by some of their bits.
#pragma once

#include <cstddef>
#include <cstdint>

namespace keel::kernels {

// Sorts n words stably by the `bits` bits from `first_bit` on, through `spare`, which has room for
// as many. Returns where the result stands, `words` or `spare`.
uint64_t* radix_sort(uint64_t* words, uint64_t* spare, size_t n, int first_bit, int bits);

}  // namespace keel::kernels
