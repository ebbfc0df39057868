#include <keel/layers/retrieval/internal/top_candidates.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>
#include <keel/framework/random.h>

namespace keel::top_candidates_test {

// Small integers: their products are exact, and many are equal.
std::vector<float> whole_numbers(int64_t n, uint64_t seed) {
  const RandomStream random{.seed = seed};
  std::vector<float> out(n);
  for (int64_t i = 0; i < n; ++i) out[i] = static_cast<float>(random.bits(i)[0] % 5) - 2;
  return out;
}

// Reference result: sorts all candidates.
std::vector<Candidate> by_hand(const std::vector<float>& queries,
                               const std::vector<float>& candidates, int64_t dim, int64_t k) {
  std::vector<Candidate> out;
  for (size_t q = 0; q < queries.size(); q += dim) {
    std::vector<Candidate> all;
    for (size_t c = 0; c < candidates.size(); c += dim) {
      all.push_back({std::inner_product(&queries[q], &queries[q] + dim, &candidates[c], 0.0f),
                     static_cast<int64_t>(c / dim)});
    }
    std::ranges::stable_sort(all, std::ranges::greater(), &Candidate::score);
    out.insert(out.end(), all.begin(), all.begin() + k);
  }
  return out;
}

void expect_equal(const std::vector<Candidate>& found, const std::vector<Candidate>& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    EXPECT_EQ(found[i].position, expected[i].position) << i;
    EXPECT_EQ(found[i].score, expected[i].score) << i;
  }
}

TEST(TopCandidatesTest, MatchAStableSort) {
  struct Case {
    int64_t queries, candidates, dim, k;
  };
  for (const Case& c : {Case{1, 1, 1, 1},
                        {3, 7, 2, 7},
                        {33, 1025, 3, 10},
                        {300, 50, 4, 5},
                        {2, 70000, 2, 3},
                        {1, 70000, 1, 100}}) {
    SCOPED_TRACE(testing::Message() << c.queries << " of " << c.candidates);
    const auto queries = whole_numbers(c.queries * c.dim, 1);
    const auto candidates = whole_numbers(c.candidates * c.dim, 2);
    expect_equal(top_candidates(queries, candidates, c.dim, c.k),
                 by_hand(queries, candidates, c.dim, c.k));
  }
}

TEST(TopCandidatesTest, EqualCandidatesTieAtAnyPosition) {
  constexpr int64_t kCandidates = 3001;
  for (const int64_t dim : {3, 16, 37, 128}) {
    std::vector<float> row(dim), query(dim), candidates;
    RandomStream{.seed = 4}.normal(row, 0, 0, 1);
    RandomStream{.seed = 5}.normal(query, 0, 0, 1);
    for (int64_t i = 0; i < kCandidates; ++i) {
      candidates.insert(candidates.end(), row.begin(), row.end());
    }
    const auto found = top_candidates(query, candidates, dim, kCandidates);
    for (int64_t i = 0; i < kCandidates; ++i) ASSERT_EQ(found[i].position, i) << "dim " << dim;
  }
}

TEST(TopCandidatesTest, DoNotDependOnTheNumberOfWorkers) {
  std::vector<float> queries(40 * 8), candidates(70000 * 8);
  RandomStream{.seed = 6}.normal(queries, 0, 0, 1);
  RandomStream{.seed = 7}.normal(candidates, 0, 0, 1);
  const int before = num_workers();
  set_num_workers(1);
  const auto one = top_candidates(queries, candidates, 8, 20);
  set_num_workers(3);
  const auto three = top_candidates(queries, candidates, 8, 20);
  set_num_workers(before);
  expect_equal(three, one);
}

TEST(TopCandidatesTest, NaNRanksLast) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const auto found =
      top_candidates(std::vector<float>{1}, std::vector<float>{nan, -5, nan, 3}, 1, 3);
  EXPECT_EQ(found[0].position, 3);
  EXPECT_EQ(found[1].position, 1);
  EXPECT_EQ(found[2].position, 0);
  EXPECT_EQ(found[2].score, -std::numeric_limits<float>::infinity());
}

}  // namespace keel::top_candidates_test
