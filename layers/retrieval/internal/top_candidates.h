// top_candidates: the greatest of many dot products.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace keel {

struct Candidate {
  float score = 0;
  int64_t position = 0;
};

// For each row q of queries [n, dim] the k rows c of candidates [m, dim] of the greatest q . c, the
// best first, of equal ones the first; NaN counts as minus infinity. [n, k]; 0 < k <= m.
//
// Loop: for blocks of queries and spans of candidates at once, the products with blocks of the
// span, of which a heap keeps the best k of each query; then the spans' heaps are merged in order.
std::vector<Candidate> top_candidates(std::span<const float> queries,
                                      std::span<const float> candidates, int64_t dim, int64_t k);

}  // namespace keel
