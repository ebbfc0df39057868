// Tests framework/kernels/update_rules/stochastic_rounding.cc.
#include <keel/framework/kernels/half.h>

#include <bit>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/random.h>

namespace keel::kernels::half_test {

template <class Half>
class HalfTest : public testing::Test {};
using Halves = testing::Types<BFloat16, Float16>;
TYPED_TEST_SUITE(HalfTest, Halves);

constexpr float kInfinity = std::numeric_limits<float>::infinity();

template <class Half>
constexpr bool kIsFloat16 = std::is_same_v<Half, Float16>;
// The number of fraction bits, the exponent of the smallest normal number, and the largest number.
template <class Half>
constexpr int kFraction = kIsFloat16<Half> ? 10 : 7;
template <class Half>
constexpr int kSmallest = kIsFloat16<Half> ? -14 : -126;
template <class Half>
constexpr float kLargest = kIsFloat16<Half> ? 65504.0F : 0x1.FEp127F;

template <class Half>
float value_of(uint16_t bits) {
  const Half half{bits};
  float out = 0;
  to_floats(&half, 1, &out);
  return out;
}

template <class Half>
float nearest(float x) {
  Half half;
  round_to_nearest(&x, 1, &half);
  return value_of<Half>(half.bits);
}

// The spacing of the format's values at x, by the definition: a power of two given by the exponent.
template <class Half>
double step_at(double x) {
  const int exponent = std::max(std::ilogb(x), kSmallest<Half>);
  return std::ldexp(1.0, exponent - kFraction<Half>);
}

TYPED_TEST(HalfTest, EveryValueIsWhatItsBitsSay) {
  constexpr int kBits = kFraction<TypeParam>;
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const float value = value_of<TypeParam>(static_cast<uint16_t>(bits));
    const int exponent = static_cast<int>((bits & 0x7FFFU) >> kBits);
    const int fraction = static_cast<int>(bits & ((1U << kBits) - 1));
    const int largest = (1 << (15 - kBits)) - 1;
    const double sign = (bits & 0x8000U) != 0 ? -1 : 1;
    if (exponent == largest && fraction != 0) {
      EXPECT_TRUE(std::isnan(value)) << bits;
    } else if (exponent == largest) {
      EXPECT_EQ(value, sign * kInfinity) << bits;
    } else {
      const double expected =
          exponent == 0
              ? std::ldexp(fraction, kSmallest<TypeParam> - kBits)
              : std::ldexp(fraction + (1 << kBits), kSmallest<TypeParam> - kBits + exponent - 1);
      EXPECT_EQ(value, static_cast<float>(sign * expected)) << bits;
      EXPECT_EQ(std::signbit(value), sign < 0) << bits;
    }
  }
}

TYPED_TEST(HalfTest, WhatThereIsAValueForComesBackFromEitherRounding) {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const auto half = static_cast<uint16_t>(bits);
    const float value = value_of<TypeParam>(half);
    TypeParam near, drawn;
    round_to_nearest(&value, 1, &near);
    round_stochastically(&value, 1, mixed_key(1, bits), &drawn);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(value_of<TypeParam>(near.bits)));
      EXPECT_TRUE(std::isnan(value_of<TypeParam>(drawn.bits)));
    } else {
      EXPECT_EQ(near.bits, half);
      EXPECT_EQ(drawn.bits, half);
    }
  }
}

TYPED_TEST(HalfTest, TheNearestValueIsTakenAndOfTwoTheEvenOne) {
  std::vector<float> xs(4096);
  const RandomStream stream{.seed = 7};
  stream.normal(xs, 0, 0, 1);
  for (size_t i = 0; i < xs.size(); ++i) {
    xs[i] = std::ldexp(xs[i], static_cast<int>(i % 40) - 30);  // small numbers too
    const double step = step_at<TypeParam>(xs[i]);
    EXPECT_EQ(nearest<TypeParam>(xs[i]), std::nearbyint(xs[i] / step) * step) << xs[i];
  }
  for (const float whole : {1.0F, 37.0F, 64.0F}) {
    const double step = step_at<TypeParam>(whole);
    const auto half_way = static_cast<float>(whole + step / 2);
    EXPECT_EQ(nearest<TypeParam>(half_way), std::nearbyint(half_way / step) * step);
  }
}

TYPED_TEST(HalfTest, FiniteNumbersStayFiniteAndTheOthersStayWhatTheyAre) {
  const float most = std::numeric_limits<float>::max();
  const std::vector<float> xs = {most, -most, kInfinity, -kInfinity, std::nanf(""), -0.0F};
  for (const bool draws : {false, true}) {
    std::vector<TypeParam> halves(xs.size());
    std::vector<float> out(xs.size());
    if (draws) {
      round_stochastically(xs.data(), std::ssize(xs), 3, halves.data());
    } else {
      round_to_nearest(xs.data(), std::ssize(xs), halves.data());
    }
    to_floats(halves.data(), std::ssize(xs), out.data());
    EXPECT_EQ(out[0], kLargest<TypeParam>);
    EXPECT_EQ(out[1], -kLargest<TypeParam>);
    EXPECT_EQ(out[2], kInfinity);
    EXPECT_EQ(out[3], -kInfinity);
    EXPECT_TRUE(std::isnan(out[4]));
    EXPECT_TRUE(out[5] == 0 && std::signbit(out[5]));
  }
}

TYPED_TEST(HalfTest, DrawsAreOneOfTheTwoValuesBesideAndRightInTheMean) {
  // x lies the fraction p of a step above `below`. The number of draws that round up has mean n p
  // and variance n p (1 - p). A difference of more than five standard deviations occurs by chance
  // once in two million.
  constexpr int kDraws = 20000;
  for (const double at : {1.0, -1.75, 3.0 * 0x1p-10, 0x1p-15, -3.0 * 0x1p-22}) {
    const double step = step_at<TypeParam>(at);
    const double below = std::floor(at / step) * step;
    for (const double p : {0.0625, 0.25, 0.5, 0.875}) {
      const auto x = static_cast<float>(below + p * step);
      ASSERT_EQ(x, below + p * step);
      int rises = 0;
      for (int i = 0; i < kDraws; ++i) {
        TypeParam half;
        round_stochastically(&x, 1, mixed_key(11, i), &half);
        const double drawn = value_of<TypeParam>(half.bits);
        ASSERT_TRUE(drawn == below || drawn == below + step) << x << " to " << drawn;
        rises += drawn > below ? 1 : 0;
      }
      EXPECT_NEAR(rises, kDraws * p, 5 * std::sqrt(kDraws * p * (1 - p))) << x;
    }
  }
}

TYPED_TEST(HalfTest, ElementsOfARowAndKeysThatFollowEachOtherDrawAlone) {
  // If the draws of two elements are independent, both round up with probability p^2.
  constexpr int kKeys = 400, kDim = 64;
  const double p = 0.25;
  const std::vector<float> row(kDim, static_cast<float>(1 + p * step_at<TypeParam>(1)));
  std::vector<std::vector<bool>> rises(kKeys, std::vector<bool>(kDim));
  for (int k = 0; k < kKeys; ++k) {
    std::vector<TypeParam> halves(kDim);
    round_stochastically(row.data(), kDim, mixed_key(5, k), halves.data());
    for (int i = 0; i < kDim; ++i) rises[k][i] = value_of<TypeParam>(halves[i].bits) > 1;
  }
  int beside = 0, after = 0, n = 0;
  for (int k = 0; k + 1 < kKeys; ++k) {
    for (int i = 0; i + 1 < kDim; ++i, ++n) {
      beside += rises[k][i] && rises[k][i + 1] ? 1 : 0;
      after += rises[k][i] && rises[k + 1][i] ? 1 : 0;
    }
  }
  // The pairs overlap, which raises the variance per pair to (p^2 - p^4) + 2 (p^3 - p^4).
  const double variance = (p * p - std::pow(p, 4)) + 2 * (std::pow(p, 3) - std::pow(p, 4));
  EXPECT_NEAR(beside, n * p * p, 5 * std::sqrt(n * variance));
  EXPECT_NEAR(after, n * p * p, 5 * std::sqrt(n * variance));
}

TYPED_TEST(HalfTest, ADrawDependsOnValueKeyAndElementAlone) {
  std::vector<float> row(37);
  RandomStream{.seed = 1}.normal(row, 0, 0, 1);
  std::vector<TypeParam> whole(row.size()), part(row.size());
  round_stochastically(row.data(), std::ssize(row), 99, whole.data());
  round_stochastically(row.data(), 13, 99, part.data());
  for (size_t i = 0; i < 13; ++i) EXPECT_EQ(part[i].bits, whole[i].bits);
}

TYPED_TEST(HalfTest, LookupsAreThoseOfTheTableOfTheirFloatsBitForBit) {
  const std::vector<int64_t> splits = {0, 3, 3, 4, 9, 40};
  std::vector<int64_t> ids(40);
  RandomStream{.seed = 2}.uniform_int(ids, 0, 50);
  std::vector<float> weights(ids.size());
  RandomStream{.seed = 4}.uniform(weights, 0, -1, 1);
  for (const int64_t dim : {1, 7, 8, 16, 24, 64, 128, 130}) {
    std::vector<float> values(50 * dim);
    RandomStream{.seed = 3}.normal(values, 0, 0, 1);
    std::vector<TypeParam> halves(values.size());
    round_to_nearest(values.data(), std::ssize(values), halves.data());
    to_floats(halves.data(), std::ssize(values), values.data());
    std::vector<float> expected(ids.size() * dim), found(ids.size() * dim);
    gather_rows(values.data(), dim, ids.data(), std::ssize(ids), expected.data());
    gather_rows(halves.data(), dim, ids.data(), std::ssize(ids), found.data());
    EXPECT_EQ(found, expected) << dim;
    for (const bool weighted : {false, true}) {
      for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
        const Bags bags = {.ids = ids.data(),
                           .splits = splits.data(),
                           .samples = 5,
                           .weights = weighted ? weights.data() : nullptr};
        pooled_gather(values.data(), dim, bags, combiner, expected.data());
        pooled_gather(halves.data(), dim, bags, combiner, found.data());
        EXPECT_EQ(found, expected) << dim;
      }
    }
  }
}

// Where the numbers are finite, rounding to the storage type gives the same values.
TEST(RoundAsFloat16Test, MatchesTheStorageTypeAndOverflows) {
  std::vector<float> values(4096);
  RandomStream{.seed = 6}.normal(values, 0, 0, 1);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = std::ldexp(values[i], static_cast<int>(i % 40) - 28);
  }
  std::vector<Float16> halves(values.size());
  std::vector<float> stored(values.size()), rounded(values.size());
  round_to_nearest(values.data(), std::ssize(values), halves.data());
  to_floats(halves.data(), std::ssize(values), stored.data());
  round_as_float16(values.data(), std::ssize(values), rounded.data());
  EXPECT_EQ(rounded, stored);
  const std::vector<float> special = {65519, 65520, -1e30F, INFINITY, NAN, 0x3p-25F, -0.0F};
  std::vector<float> out(special.size());
  round_as_float16(special.data(), std::ssize(special), out.data());
  EXPECT_EQ(out[0], 65504);
  EXPECT_EQ(out[1], INFINITY);
  EXPECT_EQ(out[2], -INFINITY);
  EXPECT_EQ(out[3], INFINITY);
  EXPECT_TRUE(std::isnan(out[4]));
  EXPECT_EQ(out[5], 0x1p-23F);
  EXPECT_TRUE(std::signbit(out[6]));
}

}  // namespace keel::kernels::half_test
