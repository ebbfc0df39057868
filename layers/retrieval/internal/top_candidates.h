// top_candidates(): finds the greatest of many dot products.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace keel {

// A score and the row of the candidate.
struct Candidate {
  float score = 0;
  int64_t position = 0;
};

// For each row q of queries [n, dim], returns the k rows c of candidates [m, dim] with the greatest
// q . c in descending order; among equal scores the first row wins, and NaN counts as minus
// infinity. The result is [n, k]; requires 0 < k <= m.
//
// Blocks of queries and spans of candidates are processed in parallel. A heap keeps the best k
// candidates of each query in a span; the heaps of the spans are then merged in order, so that
// results do not depend on the number of threads.
std::vector<Candidate> top_candidates(std::span<const float> queries,
                                      std::span<const float> candidates, int64_t dim, int64_t k);

}  // namespace keel
