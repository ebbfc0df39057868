#include <keel/distribute/dynamic/internal/exact_sum.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace keel::distribute::exact_sum_test {

double square(float x) { return static_cast<double>(x) * static_cast<double>(x); }

double sum_of(const std::vector<double>& summands, size_t parts = 1) {
  std::vector<ExactSum> sums(parts);
  for (size_t i = 0; i < summands.size(); ++i) sums[i % parts] += summands[i];
  ExactSum out;
  for (const ExactSum& sum : sums) out += sum;
  return out.value();
}

TEST(ExactSumTest, SquaresOfAllMagnitudesAreSummed) {
  using Limits = std::numeric_limits<float>;
  EXPECT_EQ(sum_of({}), 0);
  EXPECT_EQ(sum_of({0, 0}), 0);
  for (const float x : {1.0F, 0.1F, 3.7e-20F, Limits::denorm_min(), Limits::min(), Limits::max()}) {
    EXPECT_EQ(sum_of({square(x)}), square(x)) << x;
    EXPECT_EQ(sum_of({square(x), square(x)}), 2 * square(x)) << x;
    EXPECT_EQ(sum_of(std::vector<double>(1000, square(x)), 3), 1000 * square(x)) << x;
  }
  // In double the small summands would be lost one by one.
  std::vector<double> small(1 << 12, std::ldexp(1.0, -53));
  small.insert(small.begin(), 1.0);
  EXPECT_EQ(sum_of(small), 1 + std::ldexp(1.0, -41));
}

TEST(ExactSumTest, TheOrderAndTheGroupingChangeNoBit) {
  std::mt19937 random(3);
  std::vector<double> summands;
  for (int i = 0; i < 5000; ++i) {
    const auto exponent = static_cast<int>(random() % 60) - 30;
    summands.push_back(square(std::ldexp(static_cast<float>(random() % 100'000), exponent)));
  }
  const double expected = sum_of(summands);
  double rounded = 0;
  for (const double x : summands) rounded += x;
  EXPECT_NEAR(expected / rounded, 1, 1e-12);
  for (const size_t parts : {1, 2, 7}) {
    std::ranges::shuffle(summands, random);
    EXPECT_EQ(std::bit_cast<uint64_t>(sum_of(summands, parts)), std::bit_cast<uint64_t>(expected));
  }
}

TEST(ExactSumTest, ASummandThatIsNotFiniteMakesTheSumNaN) {
  EXPECT_TRUE(std::isnan(sum_of({1, std::numeric_limits<double>::infinity()})));
  EXPECT_TRUE(std::isnan(sum_of({std::nan(""), 1}, 2)));
}

}  // namespace keel::distribute::exact_sum_test
