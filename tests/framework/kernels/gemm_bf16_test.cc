#include "framework/kernels/gemm_bf16.h"

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "gtest/gtest.h"

#include "framework/parallel.h"
#include "tests/framework/kernels/random_values.h"

namespace keel::kernels {
namespace {

using testing_support::random_values;

// The nearest number of 8 significant bits, by arithmetic instead of bits.
float nearest_bfloat16(float x) {
  int exponent = 0;
  const float fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(fraction * 256), exponent - 8);
}

void expect_product(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b,
                    const GemmEpilogue& epilogue = {}) {
  const std::vector<float> a = random_values(m * k, 1);
  const std::vector<float> b = random_values(k * n, 2);
  std::vector<float> c(m * n, 7);
  gemm_bf16(a.data(), b.data(), c.data(), m, n, k, transpose_a, transpose_b, epilogue);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = epilogue.bias != nullptr ? epilogue.bias[j] : 0;
      double size = 1;
      for (int64_t p = 0; p < k; ++p) {
        const double x = nearest_bfloat16(transpose_a ? a[p * m + i] : a[i * k + p]);
        const double y = nearest_bfloat16(transpose_b ? b[j * k + p] : b[p * n + j]);
        sum += x * y;
        size += std::abs(x * y);
      }
      if (epilogue.relu) sum = std::max(sum, 0.0);
      ASSERT_NEAR(c[i * n + j], sum, 1e-6 * size) << i << " " << j;
    }
  }
}

TEST(GemmBf16Test, FourWaysOfTransposingAgreeWithTheDefinition) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const auto& [m, n, k] : {std::array<int64_t, 3>{5, 3, 7},
                                    {300, 17, 33},
                                    {1, 64, 20},
                                    {20, 1, 45},
                                    {1, 1, 300},
                                    {7, 33, 1},
                                    {130, 70, 64}}) {
        expect_product(m, n, k, transpose_a, transpose_b);
      }
    }
  }
}

TEST(GemmBf16Test, EveryWidthAndHeightOfATileAgreesWithTheDefinition) {
  for (int64_t n = 1; n <= 70; n += 3) expect_product(n % 17 + 1, n, 19, false, n % 2 == 0);
  for (int64_t m = 1; m <= 30; ++m) expect_product(m, 35, 22, m % 2 == 0, false);
}

TEST(GemmBf16Test, LongSumsAgreeWithTheDefinition) {
  expect_product(33, 40, 2100, false, false);
  expect_product(33, 40, 2101, true, false);
  expect_product(16, 40, 1500, false, true);
  expect_product(3, 1, 2100, false, false);
  expect_product(1, 300, 2101, false, false);
  expect_product(13, 140, 2101, true, false);
  expect_product(300, 1, 2101, true, false);
  expect_product(40, 1, 129, false, false);
}

TEST(GemmBf16Test, BiasAndReluComeLast) {
  const std::vector<float> bias = random_values(40, 3);
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{20, 37, 1300}, {1, 37, 8}, {9, 1, 30}, {150, 40, 3}, {3, 2, 0}}) {
    for (const bool transpose : {false, true}) {
      expect_product(m, n, k, transpose, transpose, {.bias = bias.data(), .relu = true});
      expect_product(m, n, k, transpose, !transpose, {.bias = bias.data()});
    }
  }
}

TEST(GemmBf16Test, RoundsToTheNearestAndTiesToEven) {
  // Beside 1 = 0x3F80: 1 + 2^-7.
  const float step = 0x1p-7F;
  const std::vector<float> x = {1 + step / 2,  1 + 1.5F * step, 1 + 0.49F * step, 1 + 0.51F * step,
                                -1 - step / 2, 16777216.0F,     0x1.FEFFFEp+127F};
  const std::vector<float> nearest = {1, 1 + 2 * step, 1, 1 + step, -1, 16777216.0F, 0x1.FEp+127F};
  const float one = 1;
  std::vector<float> y(x.size());
  const auto n = static_cast<int64_t>(x.size());
  gemm_bf16(x.data(), &one, y.data(), n, 1, 1, false, false);
  EXPECT_EQ(y, nearest);
  gemm_bf16(&one, x.data(), y.data(), 1, n, 1, false, false);
  EXPECT_EQ(y, nearest);
}

TEST(GemmBf16Test, InfinitiesAndNanStayWhatTheyAre) {
  const float infinity = std::numeric_limits<float>::infinity();
  // A NaN whose fraction is in the bits that rounding cuts off.
  const float low_nan = std::bit_cast<float>(0x7F800001U);
  const std::vector<float> x = {infinity, -infinity, low_nan, std::numeric_limits<float>::max()};
  const float one = 1;
  std::vector<float> y(4);
  gemm_bf16(x.data(), &one, y.data(), 4, 1, 1, false, false);
  EXPECT_EQ(y[0], infinity);
  EXPECT_EQ(y[1], -infinity);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], infinity);  // the nearest: the largest bfloat16 is a whole step away
}

// On any processor: the instruction's order.
TEST(GemmBf16Test, SumsTheSecondOfEachPairFirst) {
  const float big = 0x1p24F;
  for (const int64_t n : {5, 40, 130}) {
    const std::vector<float> a = {1, big, -big, 0};  // big, + 1 is lost, + 0, - big
    const std::vector<float> b(4 * n, 1.0F);
    std::vector<float> c(n);
    gemm_bf16(a.data(), b.data(), c.data(), 1, n, 4, false, false);
    EXPECT_EQ(c, std::vector<float>(n, 0)) << n;
    const std::vector<float> other = {-big, big, 0, 1};
    gemm_bf16(other.data(), b.data(), c.data(), 1, n, 4, false, false);
    EXPECT_EQ(c, std::vector<float>(n, 1)) << n;
  }
}

TEST(GemmBf16Test, BitsDependNeitherOnWorkersNorOnTheNumberOfRows) {
  const int64_t m = 300, n = 200, k = 1111;
  const std::vector<float> a = random_values(m * k, 1), b = random_values(k * n, 2);
  const int workers = num_workers();
  std::vector<std::vector<float>> results;
  for (const int count : {1, 3}) {
    set_num_workers(count);
    results.emplace_back(m * n);
    gemm_bf16(a.data(), b.data(), results.back().data(), m, n, k, false, false);
  }
  set_num_workers(workers);
  EXPECT_EQ(results[0], results[1]);
  for (const int64_t rows : {1, 2, 15, 100}) {
    std::vector<float> some(rows * n);
    gemm_bf16(a.data(), b.data(), some.data(), rows, n, k, false, false);
    EXPECT_TRUE(std::equal(some.begin(), some.end(), results[0].begin())) << rows;
  }
}

}  // namespace
}  // namespace keel::kernels
