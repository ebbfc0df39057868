#include <keel/framework/random.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/parallel.h>

namespace keel::random_test {

using Words = std::array<uint32_t, 4>;
const RandomStream kStream = {.seed = 11, .purpose = 5};

// Known answers published with the generator (Random123, kat_vectors).
TEST(RandomTest, BitsAreThoseOfPhilox) {
  EXPECT_EQ((RandomStream{}.bits(0)), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint64_t all = ~uint64_t{0};
  EXPECT_EQ((RandomStream{.seed = all, .purpose = all}.bits(all)),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  const RandomStream pi = {.seed = 0x299f31d0a4093822, .purpose = 0x0370734413198a2e};
  EXPECT_EQ(pi.bits(0x85a308d3243f6a88), (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(RandomTest, SeedsPurposesIndicesAndLanesAllMatter) {
  std::set<Words> seen;
  for (uint64_t a = 0; a < 3; ++a) {
    for (uint64_t b = 0; b < 3; ++b) {
      for (uint64_t c = 0; c < 3; ++c) {
        for (uint64_t d = 0; d < 3; ++d) {
          seen.insert(RandomStream{.seed = a, .purpose = b}.bits(c, d));
        }
      }
    }
  }
  EXPECT_EQ(seen.size(), 81U);
}

TEST(RandomTest, LanesAreIndependentStreams) {
  EXPECT_EQ(kStream.at_lane(3).bits(7), kStream.bits(7, 3));
  EXPECT_EQ(kStream.at_lane(0).purpose, kStream.purpose);
}

struct Moments {
  double mean = 0, stddev = 0, kurtosis = 0;
};

Moments moments(const std::vector<float>& values) {
  Moments out;
  for (const float v : values) out.mean += v;
  out.mean /= static_cast<double>(values.size());
  double second = 0;
  double fourth = 0;
  for (const float v : values) {
    const double d = v - out.mean;
    second += d * d;
    fourth += d * d * d * d;
  }
  second /= static_cast<double>(values.size());
  out.stddev = std::sqrt(second);
  out.kurtosis = fourth / static_cast<double>(values.size()) / (second * second);
  return out;
}

constexpr int64_t kMany = 400000;

TEST(RandomTest, UniformNumbersHaveTheirMomentsAndBounds) {
  std::vector<float> values(kMany);
  kStream.uniform(values, 0, -1.0F, 3.0F);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 1.0, 0.01);
  EXPECT_NEAR(m.stddev, 4 / std::sqrt(12.0), 0.01);
  EXPECT_NEAR(m.kurtosis, 1.8, 0.02);
  EXPECT_GE(std::ranges::min(values), -1.0F);
  EXPECT_LT(std::ranges::max(values), 3.0F);
}

TEST(RandomTest, UniformNumbersNeverRoundUpToTheUpperBound) {
  std::vector<float> values(kMany);
  kStream.uniform(values, 0, 16777214.0F, 16777216.0F);
  EXPECT_EQ(std::ranges::max(values), 16777215.0F);
  EXPECT_EQ(std::ranges::min(values), 16777214.0F);
}

TEST(RandomTest, NormalNumbersHaveTheirMoments) {
  std::vector<float> values(kMany);
  kStream.normal(values, 0, 2.0F, 0.5F);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 2.0, 0.004);
  EXPECT_NEAR(m.stddev, 0.5, 0.003);
  EXPECT_NEAR(m.kurtosis, 3.0, 0.04);
  const auto beyond_three =
      std::ranges::count_if(values, [](float v) { return std::abs(v - 2.0F) > 1.5F; });
  EXPECT_NEAR(static_cast<double>(beyond_three) / kMany, 0.0026998, 0.0003);
}

// Applying the normal distribution function to a number gives the probability that its word
// encodes.
TEST(RandomTest, NormalNumbersAreQuantilesOfRandomWords) {
  std::vector<float> values(4000);
  kStream.normal(values, 0, 0.0F, 1.0F);
  for (size_t i = 0; i < values.size(); ++i) {
    const double p = (kStream.bits(i / 4)[i % 4] + 0.5) * 0x1p-32;
    const double back = 0.5 * std::erfc(-static_cast<double>(values[i]) / std::sqrt(2.0));
    ASSERT_NEAR(back, p, 2e-7 * std::max(p * (1 - p) * 8, 1e-3)) << i;
  }
}

TEST(RandomTest, TruncatedNumbersStayWithinTwoStddev) {
  std::vector<float> values(kMany);
  kStream.truncated_normal(values, 0, 0.0F, 0.25F);
  const Moments m = moments(values);
  EXPECT_NEAR(m.mean, 0.0, 0.002);
  EXPECT_NEAR(m.stddev, 0.25 * 0.87962566103423978, 0.001);
  EXPECT_LE(std::ranges::max(values), 0.5F);
  EXPECT_GE(std::ranges::min(values), -0.5F);
  EXPECT_GT(std::ranges::max(values), 0.499F);
}

TEST(RandomTest, IntegersAreUniform) {
  std::vector<int64_t> values(kMany);
  kStream.uniform_int(values, 0, 7);
  std::map<int64_t, int64_t> counts;
  for (const int64_t v : values) ++counts[v];
  ASSERT_EQ(counts.size(), 7U);
  double chi_square = 0;
  for (const auto& [value, count] : counts) {
    EXPECT_GE(value, 0);
    EXPECT_LT(value, 7);
    const double expected = kMany / 7.0;
    chi_square += (count - expected) * (count - expected) / expected;
  }
  EXPECT_LT(chi_square, 22.5);  // 0.1 % of correct draws exceed it
}

TEST(RandomTest, IntegersCoverTheWholeRange) {
  std::vector<int64_t> values(10000);
  const int64_t bound = int64_t{1} << 62;
  kStream.uniform_int(values, 0, bound);
  EXPECT_GT(std::ranges::max(values), bound / 1000 * 999);
  EXPECT_LT(std::ranges::min(values), bound / 1000);
  EXPECT_EQ(std::set<int64_t>(values.begin(), values.end()).size(), values.size());
}

TEST(RandomTest, IntegersNeedAPositiveBound) {
  std::vector<int64_t> values(1);
  EXPECT_THROW(kStream.uniform_int(values, 0, 0), ValueError);
  EXPECT_THROW(kStream.permutation(-1), ValueError);
}

TEST(RandomTest, ARangeHasTheNumbersOfTheWhole) {
  constexpr int64_t kSize = 70001;
  std::vector<float> uniform(kSize), normal(kSize), truncated(kSize);
  std::vector<int64_t> integers(kSize);
  kStream.uniform(uniform, 0, -1, 1);
  kStream.normal(normal, 0, 1, 2);
  kStream.truncated_normal(truncated, 0, 1, 2);
  kStream.uniform_int(integers, 0, 1000003);
  for (const int64_t first : {1, 2, 3, 5, 511, 513, 65537, 70000}) {
    for (const int64_t count : {0, 1, 2, 6, 1030}) {
      const int64_t size = std::min(count, kSize - first);
      std::vector<float> part(size);
      const auto expect_part = [&](const std::vector<float>& whole) {
        EXPECT_TRUE(std::ranges::equal(part, std::span(whole).subspan(first, size))) << first;
      };
      kStream.uniform(part, first, -1, 1);
      expect_part(uniform);
      kStream.normal(part, first, 1, 2);
      expect_part(normal);
      kStream.truncated_normal(part, first, 1, 2);
      expect_part(truncated);
      std::vector<int64_t> some(size);
      kStream.uniform_int(some, first, 1000003);
      EXPECT_TRUE(std::ranges::equal(some, std::span(integers).subspan(first, size))) << first;
    }
  }
}

TEST(RandomTest, ResultsDoNotDependOnTheNumberOfWorkers) {
  const int before = num_workers();
  std::vector<std::vector<float>> results;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    kStream.normal(results.emplace_back(300000), 3, 0, 1);
  }
  set_num_workers(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(RandomTest, PermutationsContainEveryPositionOnce) {
  for (const int64_t n : {0, 1, 2, 511, 512, 513, 20000}) {
    std::vector<int64_t> values = kStream.permutation(n);
    ASSERT_EQ(std::ssize(values), n);
    std::ranges::sort(values);
    for (int64_t i = 0; i < n; ++i) ASSERT_EQ(values[i], i);
  }
}

TEST(RandomTest, AllOrdersOfThreeAreEquallyLikely) {
  std::map<std::vector<int64_t>, int> counts;
  for (uint64_t purpose = 0; purpose < 6000; ++purpose) {
    ++counts[RandomStream{.seed = 1, .purpose = purpose}.permutation(3)];
  }
  ASSERT_EQ(counts.size(), 6U);
  for (const auto& [order, count] : counts) EXPECT_NEAR(count, 1000, 120);
}

TEST(RandomTest, StreamsRepeatAfterTheSeedIsSetAgain) {
  set_random_seed(42);
  const Words first = next_random_stream().bits(0);
  const Words second = next_random_stream().bits(0);
  EXPECT_NE(first, second);
  set_random_seed(42);
  EXPECT_EQ(next_random_stream().bits(0), first);
  EXPECT_EQ(next_random_stream().bits(0), second);
  set_random_seed(43);
  EXPECT_NE(next_random_stream().bits(0), first);
}

TEST(RandomTest, AStreamWithItsOwnSeedDependsOnNothingElse) {
  set_random_seed(42);
  const Words own = next_random_stream(7).bits(0);
  const Words next = next_random_stream().bits(0);
  set_random_seed(43);
  EXPECT_EQ(next_random_stream(7).bits(0), own);
  EXPECT_NE(next_random_stream(8).bits(0), own);
  set_random_seed(42);
  EXPECT_EQ(next_random_stream().bits(0), next) << "an own seed must not take a number";
  set_random_seed(7);
  EXPECT_NE(next_random_stream().bits(0), own);
}

}  // namespace keel::random_test
