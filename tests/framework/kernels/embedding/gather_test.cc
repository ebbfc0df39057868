#include <keel/framework/kernels/embedding/gather.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>

namespace keel::kernels::gather_test {

// Row i is [2 i, 2 i + 1].
const std::vector<float> kTable = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
const std::vector<int64_t> kIds = {2, 5, 1, 1, 7};
const std::vector<int64_t> kSplits = {0, 2, 4, 4, 5};
const std::vector<float> kWeights = {0.5F, 2.0F, 1.0F, 3.0F, 0.25F};

void expect_pooled(const std::vector<int64_t>& ids, const std::vector<int64_t>& splits,
                   const std::vector<float>& weights, Combiner combiner,
                   const std::vector<double>& expected) {
  const Bags bags = {.ids = ids.data(),
                     .splits = splits.data(),
                     .samples = std::ssize(splits) - 1,
                     .weights = weights.empty() ? nullptr : weights.data()};
  std::vector<float> floats(expected.size(), -1);
  pooled_gather(kTable.data(), 2, bags, combiner, floats.data());
  const std::vector<double> table(kTable.begin(), kTable.end());
  std::vector<double> doubles(expected.size(), -1);
  pooled_gather(table.data(), 2, bags, combiner, doubles.data());
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(floats[i], expected[i], 1e-6 * std::max(1.0, std::abs(expected[i]))) << i;
    EXPECT_NEAR(doubles[i], expected[i], 1e-7 * std::max(1.0, std::abs(expected[i]))) << i;
  }
}

TEST(GatherTest, SumsRowsOfEachSample) {
  expect_pooled(kIds, kSplits, {}, Combiner::kSum, {14, 16, 4, 6, 0, 0, 14, 15});
  expect_pooled(kIds, kSplits, kWeights, Combiner::kSum, {22, 24.5, 8, 12, 0, 0, 3.5, 3.75});
}

// Tables may have other data after each row.
TEST(GatherTest, RowsMayBeStrided) {
  const Bags bags = {.ids = kIds.data(),
                     .splits = kSplits.data(),
                     .samples = std::ssize(kSplits) - 1,
                     .weights = kWeights.data()};
  for (const int64_t row_step : {2, 3, 8}) {
    std::vector<float> floats(kTable.size() / 2 * row_step, NAN);
    for (size_t row = 0; row < kTable.size() / 2; ++row) {
      std::copy_n(kTable.data() + 2 * row, 2, floats.data() + row * row_step);
    }
    const auto expect = [&](const auto* table) {
      std::vector<float> rows(2 * kIds.size()), pooled(2 * bags.samples);
      gather_rows(table, 2, kIds.data(), std::ssize(kIds), rows.data(), row_step);
      EXPECT_EQ(rows, (std::vector<float>{4, 5, 10, 11, 2, 3, 2, 3, 14, 15}));
      pooled_gather(table, 2, bags, Combiner::kSum, pooled.data(), row_step);
      EXPECT_EQ(pooled, (std::vector<float>{22, 24.5, 8, 12, 0, 0, 3.5, 3.75}));
    };
    expect(floats.data());
    std::vector<BFloat16> bfloats(floats.size());
    round_to_nearest(floats.data(), std::ssize(floats), bfloats.data());
    expect(bfloats.data());
    std::vector<Float16> halves(floats.size());
    round_to_nearest(floats.data(), std::ssize(floats), halves.data());
    expect(halves.data());
  }
}

TEST(GatherTest, AveragesRowsOfEachSample) {
  expect_pooled(kIds, kSplits, {}, Combiner::kMean, {7, 8, 2, 3, 0, 0, 14, 15});
  expect_pooled(kIds, kSplits, kWeights, Combiner::kMean, {8.8, 9.8, 2, 3, 0, 0, 14, 15});
}

TEST(GatherTest, DividesByTheRootOfTheSumOfSquares) {
  expect_pooled(kIds, kSplits, {}, Combiner::kSqrtN,
                {9.8994949, 11.3137085, 2.8284271, 4.2426407, 0, 0, 14, 15});
  expect_pooled(kIds, kSplits, kWeights, Combiner::kSqrtN,
                {10.6715675, 11.8842456, 2.5298221, 3.7947332, 0, 0, 14, 15});
}

TEST(GatherTest, KeepsSignedWeightsAndDividesByZeroAsZero) {
  const std::vector<int64_t> ids = {3, 5, 4, 1, 2};
  const std::vector<int64_t> splits = {0, 2, 3, 5};
  const std::vector<float> weights = {2, -1, 0, 1, -1};
  expect_pooled(ids, splits, weights, Combiner::kSum, {2, 3, 0, 0, -2, -2});
  expect_pooled(ids, splits, weights, Combiner::kMean, {2, 3, 0, 0, 0, 0});
  expect_pooled(ids, splits, weights, Combiner::kSqrtN,
                {0.8944272, 1.3416408, 0, 0, -1.4142136, -1.4142136});
}

TEST(GatherTest, GainsAreTheFactorsOfTheirRows) {
  Bags bags = {.ids = kIds.data(), .splits = kSplits.data(), .samples = 4};
  std::vector<float> gains(5);
  pooling_gains(bags, Combiner::kSum, gains.data());
  EXPECT_EQ(gains, (std::vector<float>{1, 1, 1, 1, 1}));
  pooling_gains(bags, Combiner::kMean, gains.data());
  EXPECT_EQ(gains, (std::vector<float>{0.5F, 0.5F, 0.5F, 0.5F, 1}));
  bags.weights = kWeights.data();
  pooling_gains(bags, Combiner::kMean, gains.data());
  EXPECT_EQ(gains, (std::vector<float>{0.2F, 0.8F, 0.25F, 0.75F, 1}));
  pooling_gains(bags, Combiner::kSqrtN, gains.data());
  EXPECT_FLOAT_EQ(gains[1], 2 / std::sqrt(4.25F));
  EXPECT_FLOAT_EQ(gains[3], 3 / std::sqrt(10.0F));
}

TEST(GatherTest, GainsOfAZeroDivisorAreZero) {
  const std::vector<float> weights = {1, -1, 0, 2, 0};
  const Bags bags = {
      .ids = kIds.data(), .splits = kSplits.data(), .samples = 4, .weights = weights.data()};
  std::vector<float> gains(5, 9);
  pooling_gains(bags, Combiner::kMean, gains.data());
  EXPECT_EQ(gains, (std::vector<float>{0, 0, 0, 1, 0}));
}

struct Problem {
  std::vector<int64_t> ids = {}, splits = {0};
  std::vector<float> table = {}, weights = {};
  Bags bags(bool weighted) const {
    return {.ids = ids.data(),
            .splits = splits.data(),
            .samples = std::ssize(splits) - 1,
            .weights = weighted ? weights.data() : nullptr};
  }
};

Problem random_problem(int64_t samples, int64_t rows, int64_t dim) {
  std::mt19937 random(static_cast<uint32_t>(dim));
  std::normal_distribution<float> normal;
  Problem out;
  for (int64_t i = 0; i < rows * dim; ++i) out.table.push_back(normal(random));
  for (int64_t s = 0; s < samples; ++s) {
    for (int64_t k = random() % 7; k > 0; --k) {
      out.ids.push_back(random() % rows);
      out.weights.push_back(normal(random));
    }
    out.splits.push_back(std::ssize(out.ids));
  }
  return out;
}

// The formula of gather.h as a plain loop over elements.
std::vector<float> naive(const Problem& problem, int64_t dim, bool weighted) {
  std::vector<float> out;
  for (size_t s = 0; s + 1 < problem.splits.size(); ++s) {
    for (int64_t j = 0; j < dim; ++j) {
      float sum = 0;
      for (int64_t p = problem.splits[s]; p < problem.splits[s + 1]; ++p) {
        sum += (weighted ? problem.weights[p] : 1.0F) * problem.table[problem.ids[p] * dim + j];
      }
      out.push_back(sum);
    }
  }
  return out;
}

TEST(GatherTest, EveryDimensionHasTheBitsOfAPlainLoop) {
  for (const int64_t dim : {1, 3, 8, 10, 16, 32, 48, 64, 100, 128, 150}) {
    const Problem problem = random_problem(400, 300, dim);
    for (const bool weighted : {false, true}) {
      std::vector<float> out(400 * dim, -1);
      pooled_gather(problem.table.data(), dim, problem.bags(weighted), Combiner::kSum, out.data());
      EXPECT_EQ(out, naive(problem, dim, weighted)) << dim;
    }
    std::vector<float> rows(problem.ids.size() * dim);
    gather_rows(problem.table.data(), dim, problem.ids.data(), std::ssize(problem.ids),
                rows.data());
    for (size_t i = 0; i < rows.size(); ++i) {
      ASSERT_EQ(rows[i], problem.table[problem.ids[i / dim] * dim + i % dim]) << dim;
    }
  }
}

TEST(GatherTest, BitsDoNotDependOnTheNumberOfWorkers) {
  const int before = num_workers();
  const Problem problem = random_problem(5000, 300, 32);
  std::vector<std::vector<float>> results;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    pooled_gather(problem.table.data(), 32, problem.bags(true), Combiner::kMean,
                  results.emplace_back(5000 * 32).data());
  }
  set_num_workers(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(GatherTest, EmptyInputsDoNothing) {
  const std::vector<int64_t> splits = {0};
  const Bags bags = {.ids = nullptr, .splits = splits.data(), .samples = 0};
  pooled_gather(kTable.data(), 2, bags, Combiner::kMean, nullptr);
  pooling_gains(bags, Combiner::kMean, nullptr);
  gather_rows(kTable.data(), 2, nullptr, 0, nullptr);
  const std::vector<int64_t> empty = {0, 0, 0};
  std::vector<float> out(4, 5);
  pooled_gather(kTable.data(), 2, {.ids = nullptr, .splits = empty.data(), .samples = 2},
                Combiner::kSqrtN, out.data());
  EXPECT_EQ(out, std::vector<float>(4));
}

TEST(GatherTest, DoubleRowsAreGathered) {
  const std::vector<double> table = {0.1, 0.2, 0.3};
  const std::vector<int64_t> ids = {2, 0, 2};
  std::vector<double> out(3);
  gather_rows(table.data(), 1, ids.data(), 3, out.data());
  EXPECT_EQ(out, (std::vector<double>{0.3, 0.1, 0.3}));
}

}  // namespace keel::kernels::gather_test
