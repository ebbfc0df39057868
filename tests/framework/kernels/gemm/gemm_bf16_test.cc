// Tests framework/kernels/gemm/gemm_bf16_avx512.cc, gemm_bf16_portable.cc and
// framework/kernels/processor.cc.
#include <keel/framework/kernels/gemm/gemm_bf16.h>

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/amx_tiles.h>
#include <keel/framework/kernels/gemm/gemm_dispatch.h>

#include "tests/framework/kernels/nearest_bfloat16.h"
#include "tests/support/random_values.h"

namespace keel::kernels::gemm_bf16_test {

using testing_support::nearest_bfloat16;
using testing_support::random_values;

// gemm_bf16 at both precisions, and its implementation for processors without bfloat16
// instructions.
struct Way {
  const char* name;
  void (*multiply)(const internal::Product&);
  bool in_tiles;
};
template <MatmulPrecision kPrecision>
void multiply_at(const internal::Product& x) {
  gemm_bf16(x.a, x.b, x.c, x.m, x.n, x.k, x.transpose_a, x.transpose_b, x.epilogue, kPrecision);
}
const Way kHigh = {"High", multiply_at<MatmulPrecision::kHigh>, internal::may_use_tiles()};
const Way kHighest = {"Highest", multiply_at<MatmulPrecision::kHighest>, false};
const Way kPortable = {"Portable", internal::gemm_bf16_portable, false};

class GemmBf16Test : public testing::TestWithParam<Way> {
 protected:
  static void multiply(const float* a, const float* b, float* c, int64_t m, int64_t n, int64_t k,
                       bool transpose_a = false, bool transpose_b = false,
                       const GemmEpilogue& epilogue = {}) {
    GetParam().multiply({a, b, c, m, n, k, transpose_a, transpose_b, epilogue});
  }
  static void expect_product(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b,
                             const GemmEpilogue& epilogue = {});
};

INSTANTIATE_TEST_SUITE_P(Ways, GemmBf16Test, testing::Values(kHigh, kHighest, kPortable),
                         [](const auto& way) { return way.param.name; });

void GemmBf16Test::expect_product(int64_t m, int64_t n, int64_t k, bool transpose_a,
                                  bool transpose_b, const GemmEpilogue& epilogue) {
  const std::vector<float> a = random_values(m * k, 1);
  const std::vector<float> b = random_values(k * n, 2);
  std::vector<float> c(m * n, 7);
  multiply(a.data(), b.data(), c.data(), m, n, k, transpose_a, transpose_b, epilogue);
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

TEST_P(GemmBf16Test, AllTranspositionsAgreeWithTheDefinition) {
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

TEST_P(GemmBf16Test, EveryWidthAndHeightOfATileAgreesWithTheDefinition) {
  for (int64_t n = 1; n <= 70; n += 3) expect_product(n % 17 + 1, n, 19, false, n % 2 == 0);
  for (int64_t m = 1; m <= 34; ++m) expect_product(m, 35, 22, m % 2 == 0, false);
}

TEST_P(GemmBf16Test, EveryLengthOfASumAgreesWithTheDefinition) {
  for (int64_t k = 0; k <= 66; ++k) {
    expect_product(33, 18, k, k % 2 == 0, k % 4 < 2);
    expect_product(3, 21, k, k % 4 < 2, k % 2 == 0);
  }
}

TEST_P(GemmBf16Test, ManyColumnsAndRowsAgreeWithTheDefinition) {
  expect_product(40, 1100, 50, false, false);
  expect_product(2, 1100, 50, false, true);
  expect_product(1100, 40, 50, true, true);
  expect_product(70, 100, 0, false, false);
}

TEST_P(GemmBf16Test, LongSumsAgreeWithTheDefinition) {
  expect_product(33, 40, 2100, false, false);
  expect_product(33, 40, 2101, true, false);
  expect_product(16, 40, 1500, false, true);
  expect_product(3, 1, 2100, false, false);
  expect_product(1, 300, 2101, false, false);
  expect_product(13, 140, 2101, true, false);
  expect_product(300, 1, 2101, true, false);
  expect_product(40, 1, 129, false, false);
}

TEST_P(GemmBf16Test, BiasAndReluComeLast) {
  const std::vector<float> bias = random_values(40, 3);
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{20, 37, 1300}, {1, 37, 8}, {9, 1, 30}, {150, 40, 3}, {3, 2, 0}}) {
    for (const bool transpose : {false, true}) {
      expect_product(m, n, k, transpose, transpose, {.bias = bias.data(), .relu = true});
      expect_product(m, n, k, transpose, !transpose, {.bias = bias.data()});
    }
  }
}

TEST_P(GemmBf16Test, RoundsToTheNearestAndTiesToEven) {
  // The next bfloat16 after 1 = 0x3F80 is 1 + 2^-7.
  const float step = 0x1p-7F;
  const std::vector<float> x = {1 + step / 2,  1 + 1.5F * step, 1 + 0.49F * step, 1 + 0.51F * step,
                                -1 - step / 2, 16777216.0F,     0x1.FEFFFEp+127F};
  const std::vector<float> nearest = {1, 1 + 2 * step, 1, 1 + step, -1, 16777216.0F, 0x1.FEp+127F};
  const float one = 1;
  std::vector<float> y(x.size());
  const auto n = static_cast<int64_t>(x.size());
  multiply(x.data(), &one, y.data(), n, 1, 1);
  EXPECT_EQ(y, nearest);
  multiply(&one, x.data(), y.data(), 1, n, 1);
  EXPECT_EQ(y, nearest);
}

TEST_P(GemmBf16Test, InfinitiesAndNaNAreKept) {
  const float infinity = std::numeric_limits<float>::infinity();
  // A NaN whose only fraction bit is among those that rounding drops.
  const float low_nan = std::bit_cast<float>(0x7F800001U);
  const std::vector<float> x = {infinity, -infinity, low_nan, std::numeric_limits<float>::max()};
  const float one = 1;
  std::vector<float> y(4);
  multiply(x.data(), &one, y.data(), 4, 1, 1);
  EXPECT_EQ(y[0], infinity);
  EXPECT_EQ(y[1], -infinity);
  EXPECT_TRUE(std::isnan(y[2]));
  EXPECT_EQ(y[3], infinity);  // infinity is nearest: the largest bfloat16 is a whole step away
}

// Returns the sum of x[p] y[p] in the order that gemm_bf16.h documents.
float sum_in_order(const float* x, const float* y, int64_t k, bool in_tiles) {
  float sum = 0;
  if (in_tiles) {
    for (int64_t from = 0; from < k; from += 32) {
      float halves[2] = {};
      for (int64_t p = from; p < std::min(k, from + 32); ++p) {
        halves[p % 2] = std::fma(x[p], y[p], halves[p % 2]);
      }
      sum += halves[0] + halves[1];
    }
    return sum;
  }
  for (int64_t p = 0; p < k; p += 2) {
    if (p + 1 < k) sum = std::fma(x[p + 1], y[p + 1], sum);
    sum = std::fma(x[p], y[p], sum);
  }
  return sum;
}

TEST_P(GemmBf16Test, SumsInTheDocumentedOrder) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 5, 4},
                                {1, 130, 40},
                                {3, 40, 97},
                                {35, 40, 1111},
                                {70, 33, 2085}}) {
    std::vector<float> a = random_values(m * k, 1), b = random_values(n * k, 2), c(m * n);
    for (float& x : a) x = nearest_bfloat16(x);
    for (float& y : b) y = nearest_bfloat16(y);
    multiply(a.data(), b.data(), c.data(), m, n, k, false, true);
    for (int64_t i = 0; i < m * n; ++i) {
      ASSERT_EQ(c[i],
                sum_in_order(a.data() + i / n * k, b.data() + i % n * k, k, GetParam().in_tiles))
          << m << " " << n << " " << k << ": " << i;
    }
  }
}

std::vector<float> transposed(const std::vector<float>& x, int64_t rows, int64_t columns) {
  std::vector<float> out(x.size());
  for (int64_t i = 0; i < rows * columns; ++i) out[i % columns * rows + i / columns] = x[i];
  return out;
}

TEST_P(GemmBf16Test, BitsDoNotDependOnWorkersOrRowCount) {
  const int64_t m = 300, n = 200, k = 1111;
  const std::vector<float> a = random_values(m * k, 1), b = random_values(k * n, 2);
  const std::vector<float> bias = random_values(n, 3);
  const GemmEpilogue epilogue = {.bias = bias.data(), .relu = true};
  const int workers = num_workers();
  std::vector<std::vector<float>> results;
  for (const int count : {1, 3}) {
    set_num_workers(count);
    results.emplace_back(m * n);
    multiply(a.data(), b.data(), results.back().data(), m, n, k, false, false, epilogue);
  }
  set_num_workers(workers);
  EXPECT_EQ(results[0], results[1]);
  const std::vector<float> b_across = transposed(b, k, n);
  for (const int64_t rows : {1, 2, 15, 16, 33, 100}) {
    const std::vector<float> a_across =
        transposed(std::vector<float>(a.begin(), a.begin() + rows * k), rows, k);
    for (const bool transpose_a : {false, true}) {
      for (const bool transpose_b : {false, true}) {
        std::vector<float> some(rows * n);
        multiply(transpose_a ? a_across.data() : a.data(), transpose_b ? b_across.data() : b.data(),
                 some.data(), rows, n, k, transpose_a, transpose_b, epilogue);
        EXPECT_TRUE(std::equal(some.begin(), some.end(), results[0].begin())) << rows;
      }
    }
  }
}

// The operands include subnormal numbers, products and sums, infinities and NaN.
TEST(GemmBf16PortabilityTest, EveryProcessorGivesTheSameBits) {
  const auto bits_of = [](const std::vector<float>& values) {
    std::vector<uint32_t> bits;
    for (const float x : values) bits.push_back(std::bit_cast<uint32_t>(x));
    return bits;
  };
  for (const float scale : {1.0F, 1e-18F, 1e-19F, 3e-20F, 1e18F}) {
    for (const auto& [m, n, k] :
         {std::array<int64_t, 3>{3, 40, 70}, {1, 1, 200}, {5, 1, 33}, {40, 33, 600}}) {
      std::vector<float> a = random_values(m * k, 1), b = random_values(k * n, 2);
      for (float& x : a) x *= scale;
      for (float& x : b) x *= scale;
      a[0] = 0x1p-140F;
      b[0] = 0x1.fffffep-127F;  // rounds to a normal bfloat16
      std::vector<float> expected(m * n), found(m * n);
      gemm_bf16(a.data(), b.data(), expected.data(), m, n, k, false, false);
      internal::gemm_bf16_portable({a.data(), b.data(), found.data(), m, n, k, false, false, {}});
      EXPECT_EQ(bits_of(found), bits_of(expected)) << scale << ": " << m << " " << n << " " << k;
    }
  }
}

}  // namespace keel::kernels::gemm_bf16_test
