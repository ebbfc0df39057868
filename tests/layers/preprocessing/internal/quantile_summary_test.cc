#include <keel/layers/preprocessing/internal/quantile_summary.h>

#include <algorithm>

#include <gtest/gtest.h>

namespace keel::quantile_summary_test {

// Returns first, first + step, ..., less than `end`.
std::vector<float> range(int first, int end, int step) {
  std::vector<float> out;
  for (int i = first; i < end; i += step) out.push_back(static_cast<float>(i));
  return out;
}

void expect_boundaries(const QuantileSummary& summary, double bins,
                       const std::vector<double>& expected) {
  const std::vector<double> found = summary.boundaries(bins);
  ASSERT_EQ(found.size(), expected.size());
  for (size_t i = 0; i < found.size(); ++i) EXPECT_NEAR(found[i], expected[i], 1e-4);
}

TEST(QuantileSummaryTest, IsExactForFewValues) {
  QuantileSummary summary(0.01);
  summary.add({40, 10, 20});
  expect_boundaries(summary, 2, {15});
  expect_boundaries(summary, 4, {10, 20});
}

// Computed with numpy: of 250 values every second one, starting with 1, represents 2.5; 125 remain.
TEST(QuantileSummaryTest, CompressesManyValues) {
  QuantileSummary summary(0.01);
  summary.add(range(0, 250, 1));
  expect_boundaries(summary, 4, {61.5, 124, 186.5});
}

TEST(QuantileSummaryTest, MergesBatches) {
  QuantileSummary summary(0.1);
  summary.add(range(0, 500, 2));
  summary.add(range(1, 500, 2));
  expect_boundaries(summary, 3, {165.666667, 332.333333});
}

TEST(QuantileSummaryTest, DoesNotDependOnTheOrderOfValues) {
  std::vector<float> values = range(0, 1000, 1);
  QuantileSummary ascending(0.05), descending(0.05);
  ascending.add(values);
  std::ranges::reverse(values);
  descending.add(values);
  EXPECT_EQ(ascending.boundaries(7), descending.boundaries(7));
}

TEST(QuantileSummaryTest, EmptyInputsGiveAnEmptySummary) {
  QuantileSummary summary(0.1);
  summary.add({});
  EXPECT_TRUE(summary.empty());
  EXPECT_TRUE(summary.boundaries(3).empty());
}

}  // namespace keel::quantile_summary_test
