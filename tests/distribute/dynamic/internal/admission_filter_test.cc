// Tests distribute/dynamic/internal/admission_filter.cc, count_min_sketch.cc and
// initial_rows.cc.
#include <keel/distribute/dynamic/internal/admission_filter.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <unordered_map>

#include <gtest/gtest.h>

namespace keel::distribute::admission_filter_test {

InitialRows uniform_rows(int64_t dim = 6) {
  const Initializer uniform = initializers::random_uniform(-0.05, 0.05, 7);
  return {dim, uniform, uniform, {.seed = 7, .purpose = 0}};
}

template <class Key>
void expect_row(const InitialRows& rows, const Key& key, const std::vector<float>& expected) {
  std::vector<float> row(expected.size());
  rows.fill(key, row);
  EXPECT_EQ(row, expected);
}

TEST(InitialRowsTest, D060WorkedValues) {
  const InitialRows rows = uniform_rows();
  expect_row(rows, int64_t{42},
             {0.04096574F, -0.04286334F, 0.014943395F, -0.013786338F, -0.017179023F, 0.007607557F});
  expect_row(
      rows, int64_t{-1},
      {-0.035282105F, -0.013712306F, -0.024939721F, -0.03920024F, 0.032297198F, 0.036056895F});
  expect_row(
      rows, std::string("item-42"),
      {0.016454365F, 0.03064559F, -6.82883e-05F, 0.042910937F, -0.007469438F, -0.012246303F});
  std::vector<float> fallback(6);
  rows.fill_fallback(0, fallback);
  EXPECT_EQ(fallback, (std::vector<float>{-0.010511797F, -0.034362305F, -0.04759137F, -0.04265202F,
                                          -0.0061006173F, -0.03684033F}));
}

TEST(InitialRowsTest, D027WorkedDraws) {
  const InitialRows rows = uniform_rows();
  const double expected[] = {0.36878023, 0.30847225, 0.97384615, 0.013101548};
  for (int update = 0; update < 4; ++update) {
    EXPECT_NEAR(rows.draw(stream_key(int64_t{42}), update), expected[update], 5e-9);
  }
}

TEST(InitialRowsTest, RowIdsWrapAround) {
  const InitialRows rows(1, initializers::row_id(-3), "zeros", {});
  expect_row(rows, int64_t{10}, {7});
  expect_row(rows, int64_t{-10}, {-13});
  expect_row(rows, std::numeric_limits<int64_t>::max(), {9223372036854775804.0F});
}

TEST(InitialRowsTest, D062DistributionAndCorrelation) {
  constexpr int64_t kRows = 100'000, kDim = 10;
  const double stddev = 1 / std::sqrt(10.0);
  const Initializer initializer = initializers::truncated_normal(0, stddev);
  const InitialRows rows(kDim, initializer, initializer, {.seed = 3, .purpose = 5});
  std::vector<float> row(kDim), before(kDim);
  double sum = 0, squares = 0, products = 0;
  for (int64_t key = 0; key < kRows; ++key) {
    rows.fill(key, row);
    for (int64_t i = 0; i < kDim; ++i) {
      sum += row[i];
      squares += double{row[i]} * row[i];
      products += double{row[i]} * before[i];
    }
    before = row;
  }
  const double n = kRows * kDim, variance = squares / n;
  EXPECT_NEAR(sum / n, 0, 0.001);
  // The variance of a normal distribution that is truncated at two standard deviations.
  EXPECT_NEAR(variance, 0.7737413 * stddev * stddev, 0.0005);
  EXPECT_NEAR(products / n / variance, 0, 0.005);
}

TEST(AdmissionFilterTest, D027TheShareOfAdmittedKeysIsTheProbability) {
  const InitialRows rows = uniform_rows();
  const AdmissionFilter<int64_t> quarter(Admission::probability(0.25));
  const AdmissionFilter<int64_t> all(Admission::probability(1));
  int64_t admitted = 0;
  for (int64_t key = 0; key < 100'000; ++key) {
    const uint64_t hash = key_hash(key);
    for (int update = 0; update < 8; ++update) {
      admitted += quarter.qualifies(key, hash, update, rows) ? 1 : 0;
      ASSERT_TRUE(all.qualifies(key, hash, update, rows));
    }
  }
  EXPECT_NEAR(static_cast<double>(admitted) / 800'000, 0.25, 0.002);
}

TEST(AdmissionFilterTest, D028CountOfOneAdmitsEverythingAndCountsNothing) {
  const InitialRows rows = uniform_rows();
  AdmissionFilter<int64_t> filter(Admission::count(1));
  EXPECT_TRUE(filter.qualifies(3, key_hash(int64_t{3}), 0, rows));
  filter.observe(3, key_hash(int64_t{3}), 2, 0);
  EXPECT_EQ(filter.pending().size(), 0);
}

TEST(AdmissionFilterTest, D026ASketchNeverAdmitsLaterThanExactCounts) {
  const InitialRows rows = uniform_rows();
  constexpr int64_t kWidth = 4096, kOccurrences = 3;
  AdmissionFilter<int64_t> sketch(Admission::sketch(kOccurrences, {.width = kWidth}));
  std::unordered_map<int64_t, int64_t> exact;
  std::mt19937_64 random(11);
  constexpr int64_t kStream = 1'000'000;
  int64_t early = 0;
  for (int64_t i = 0; i < kStream; ++i) {
    // A Zipf-like stream: the density falls with 1 / key.
    const double u = std::generate_canonical<double, 53>(random);
    const auto key = static_cast<int64_t>(std::exp(u * std::log(1e6)));
    const uint64_t hash = key_hash(key);
    const bool exactly = exact[key] >= kOccurrences - 1;
    const bool by_sketch = sketch.qualifies(key, hash, i, rows);
    ASSERT_TRUE(by_sketch || !exactly) << key;
    early += by_sketch && !exactly ? 1 : 0;
    ++exact[key];
    sketch.observe(key, hash, 1, i);
  }
  // The bound of Cormode and Muthukrishnan: a count exceeds the exact one by more than e n / width
  // with a probability of at most e^-rows. A shard sees n = 1e6 / 1024, so that e n / width < 1.
  EXPECT_LE(static_cast<double>(early), std::exp(-4.0) * kStream);
}

TEST(CountMinSketchTest, CellsSaturateAndAreHalved) {
  CountMinSketch sketch(3);
  const uint64_t hash = key_hash(int64_t{5});
  EXPECT_EQ(sketch.cells().size(), size_t{1024} * 4 * 3);
  sketch.add(hash, 1000);
  EXPECT_EQ(sketch.count(hash), 255);
  sketch.halve();
  EXPECT_EQ(sketch.count(hash), 127);
  sketch.add(hash, 1);
  EXPECT_EQ(sketch.count(hash), 128);
}

}  // namespace keel::distribute::admission_filter_test
