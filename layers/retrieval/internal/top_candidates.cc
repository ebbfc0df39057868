#include <keel/layers/retrieval/internal/top_candidates.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/gemm.h>

namespace keel {
namespace {

constexpr int64_t kQueries = 32;          // queries of a block
constexpr int64_t kCandidates = 1024;     // candidates of a block: 128 KiB of products
constexpr int64_t kSpan = 64 * 1024;      // candidates of a task
constexpr int64_t kGroup = 8 * kQueries;  // queries of a group; bounds the memory of heaps

bool better(const Candidate& a, const Candidate& b) {
  return a.score != b.score ? a.score > b.score : a.position < b.position;
}

// Keeps the best k of the scores added; heap.front() is the worst of them. Must be called in
// ascending order of positions: an equal score at a later position is not better.
void add(std::vector<Candidate>& heap, int64_t k, float score, int64_t position) {
  const bool full = std::ssize(heap) == k;
  if (full && !(score > heap.front().score)) return;
  if (full) {
    std::ranges::pop_heap(heap, better);
    heap.pop_back();
  }
  // NaN as -inf keeps the order total.
  const float least = -std::numeric_limits<float>::infinity();
  heap.push_back({.score = std::isnan(score) ? least : score, .position = position});
  std::ranges::push_heap(heap, better);
}

struct Range {
  int64_t begin, end;
  int64_t size() const { return end - begin; }
};

// Returns block number i of `of`.
Range block(int64_t i, int64_t size, Range of) {
  const int64_t begin = of.begin + i * size;
  return {begin, std::min(begin + size, of.end)};
}

int64_t blocks(int64_t n, int64_t size) { return (n + size - 1) / size; }

// Updates the heaps of a block of queries with a span of candidates.
void scan(const float* queries, const float* candidates, int64_t dim, int64_t k, Range rows,
          Range span, std::span<std::vector<Candidate>> heaps) {
  std::vector<float> products(kQueries * kCandidates);
  for (int64_t b = 0; b < blocks(span.size(), kCandidates); ++b) {
    const Range part = block(b, kCandidates, span);
    kernels::gemm(queries + rows.begin * dim, candidates + part.begin * dim, products.data(),
                  rows.size(), part.size(), dim, false, true);
    for (int64_t q = 0; q < rows.size(); ++q) {
      const float* scores = products.data() + q * part.size();
      for (int64_t c = 0; c < part.size(); ++c) add(heaps[q], k, scores[c], part.begin + c);
    }
  }
}

}  // namespace

std::vector<Candidate> top_candidates(std::span<const float> queries,
                                      std::span<const float> candidates, int64_t dim, int64_t k) {
  const int64_t n = std::ssize(queries) / dim;
  const Range all = {0, std::ssize(candidates) / dim};
  const int64_t spans = blocks(all.size(), kSpan);
  std::vector<Candidate> out(n * k);
  for (int64_t first = 0; first < n; first += kGroup) {
    const Range group = {first, std::min(first + kGroup, n)};
    // heaps[s * size + q] is the heap of span s and query q of the group.
    std::vector<std::vector<Candidate>> heaps(spans * group.size());
    parallel_for(blocks(group.size(), kQueries) * spans, 1, [&](int64_t begin, int64_t end) {
      for (int64_t task = begin; task < end; ++task) {
        const Range rows = block(task / spans, kQueries, group);
        const int64_t span = task % spans;
        scan(queries.data(), candidates.data(), dim, k, rows, block(span, kSpan, all),
             std::span(heaps).subspan(span * group.size() + rows.begin - first, rows.size()));
      }
    });
    parallel_for(group.size(), 1, [&](int64_t begin, int64_t end) {
      for (int64_t q = begin; q < end; ++q) {
        std::vector<Candidate> merged;
        for (int64_t s = 0; s < spans; ++s) {
          const auto& heap = heaps[s * group.size() + q];
          merged.insert(merged.end(), heap.begin(), heap.end());
        }
        std::ranges::partial_sort(merged, merged.begin() + k, better);
        std::copy_n(merged.begin(), k, out.begin() + (first + q) * k);
      }
    });
  }
  return out;
}

}  // namespace keel
