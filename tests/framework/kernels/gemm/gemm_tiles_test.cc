// Products of float32 in tile registers, at MatmulPrecision::kHigh.
// Tests framework/kernels/gemm/amx_tiles.cc and gemm_amx.cc.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>
#include <keel/framework/kernels/gemm/gemm.h>
#include <keel/framework/kernels/gemm/gemm_dispatch.h>
#include <keel/framework/matmul_precision.h>

#include "tests/framework/kernels/nearest_bfloat16.h"
#include "tests/support/random_values.h"

namespace keel::kernels::gemm_tiles_test {

using testing_support::nearest_bfloat16;
using testing_support::random_values;

class Workers {
 public:
  explicit Workers(int count) : before_(num_workers()) { set_num_workers(count); }
  ~Workers() { set_num_workers(before_); }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;

 private:
  const int before_;
};

struct Operands {
  Operands(int64_t rows, int64_t columns, int64_t depth, bool across_a = false,
           bool across_b = false)
      : m(rows),
        n(columns),
        k(depth),
        transpose_a(across_a),
        transpose_b(across_b),
        a(random_values(m * k, 1)),
        b(random_values(k * n, 2)) {}

  float left(int64_t i, int64_t p) const { return transpose_a ? a[p * m + i] : a[i * k + p]; }
  float right(int64_t p, int64_t j) const { return transpose_b ? b[j * k + p] : b[p * n + j]; }

  std::vector<float> gemm(const GemmEpilogue& epilogue = {},
                          MatmulPrecision products = MatmulPrecision::kHigh) const {
    std::vector<float> c(m * n, 7);
    kernels::gemm(a.data(), b.data(), c.data(), m, n, k, transpose_a, transpose_b, epilogue,
                  products);
    return c;
  }
#if KEEL_AVX512
  std::vector<float> in_tiles(const GemmEpilogue& epilogue = {}) const {
    std::vector<float> c(m * n, 7);
    internal::gemm_in_tiles(
        {a.data(), b.data(), c.data(), m, n, k, transpose_a, transpose_b, epilogue});
    return c;
  }
#endif

  int64_t m, n, k;
  bool transpose_a, transpose_b;
  std::vector<float> a, b;
};

// The tolerance covers the omitted products of parts and the rounding of float sums.
void expect_product_near(const Operands& x, const std::vector<float>& c,
                         const GemmEpilogue& epilogue = {}) {
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      double sum = epilogue.bias != nullptr ? epilogue.bias[j] : 0;
      double size = std::abs(sum);
      for (int64_t p = 0; p < x.k; ++p) {
        const double product = static_cast<double>(x.left(i, p)) * x.right(p, j);
        sum += product;
        size += std::abs(product);
      }
      if (epilogue.relu) sum = std::max(sum, 0.0);
      ASSERT_NEAR(c[i * x.n + j], sum, 3e-7 * size)
          << x.m << " " << x.n << " " << x.k << ": " << i << " " << j;
    }
  }
}

TEST(GemmTilesTest, LargeProductsAgreeWithTheDefinitionOnEveryPath) {
  const std::vector<float> bias = random_values(200, 3);
  for (const bool across_a : {false, true}) {
    for (const bool across_b : {false, true}) {
      const Operands x(230, 200, 77, across_a, across_b);
      expect_product_near(x, x.gemm());
      expect_product_near(x, x.gemm({.bias = bias.data(), .relu = true}),
                          {.bias = bias.data(), .relu = true});
    }
  }
}

TEST(GemmTilesTest, IsMoreAccurateThanFloatRoundingOfTerms) {
  const Operands x(200, 160, 1000);
  const std::vector<float> c = x.gemm();
  double squares = 0;
  for (int64_t i = 0; i < x.m; ++i) {
    for (int64_t j = 0; j < x.n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < x.k; ++p) sum += static_cast<double>(x.left(i, p)) * x.right(p, j);
      squares += (c[i * x.n + j] - sum) * (c[i * x.n + j] - sum);
    }
  }
  // Terms have magnitude one: a sum of 1000 has magnitude 32 and a last place of 2e-6 to 4e-6.
  EXPECT_LT(std::sqrt(squares / static_cast<double>(c.size())), 2e-5);
}

TEST(GemmTilesTest, TimesOneKeepsAllBits) {
  Operands x(300, 128, 128);
  for (int64_t i = 0; i < x.k * x.n; ++i) x.b[i] = i / x.n == i % x.n ? 1 : 0;
  for (size_t i = 0; i < x.a.size(); ++i)
    x.a[i] = std::ldexp(x.a[i], static_cast<int>(i % 160) - 80);
  EXPECT_EQ(x.gemm(), x.a);
  const Operands y(128, 300, 128);
  Operands eye = y;
  for (int64_t i = 0; i < eye.m * eye.k; ++i) eye.a[i] = i / eye.k == i % eye.k ? -2 : 0;
  std::vector<float> doubled = y.b;
  for (float& v : doubled) v *= -2;
  EXPECT_EQ(eye.gemm(), doubled);
}

TEST(GemmTilesTest, IsUsedOnRequestAndForLargeProductsOnly) {
  const Operands small(40, 50, 300), large(400, 300, 300);
  const auto plain = MatmulPrecision::kHighest;
  EXPECT_EQ(small.gemm(), small.gemm({}, plain));
  EXPECT_EQ(large.gemm() == large.gemm({}, plain), !internal::may_use_tiles());
}

#if KEEL_AVX512

// Tests that call the tile implementation directly, whatever the size of the operands.
class GemmInTilesTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!internal::may_use_tiles()) GTEST_SKIP() << "this process may not use tiles";
  }
};

TEST_F(GemmInTilesTest, EveryWidthHeightAndDepthAgreesWithTheDefinition) {
  for (int64_t n = 1; n <= 70; n += 3) {
    const Operands x(n % 17 + 1, n, 19, n % 3 == 0, n % 2 == 0);
    expect_product_near(x, x.in_tiles());
  }
  for (int64_t m = 1; m <= 34; ++m) {
    const Operands x(m, 35, 22, m % 2 == 0, m % 3 == 0);
    expect_product_near(x, x.in_tiles());
  }
  for (int64_t k = 0; k <= 66; ++k) {
    const Operands x(33, 18, k, k % 2 == 0, k % 4 < 2);
    expect_product_near(x, x.in_tiles());
  }
  for (const auto& [m, n, k] :
       {std::array<int64_t, 3>{40, 1100, 50}, {1100, 40, 50}, {33, 40, 2101}, {2, 600, 1200}}) {
    for (const bool across : {false, true}) {
      const Operands x(m, n, k, across, !across);
      const std::vector<float> bias = random_values(n, 3);
      expect_product_near(x, x.in_tiles({.bias = bias.data(), .relu = across}),
                          {.bias = bias.data(), .relu = across});
    }
  }
}

std::array<float, 3> parts_of(float x) {
  const float first = nearest_bfloat16(x);
  const float second = nearest_bfloat16(x - first);
  return {first, second, x - first - second};
}

// For every 32 terms, the products of parts are added one after the other. Each is the sum of the
// terms with even numbers plus the sum of the terms with odd numbers.
float sum_in_order(const Operands& x, int64_t i, int64_t j) {
  constexpr std::array<std::array<int, 2>, 6> kProducts = {
      {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}}};
  float sum = 0;
  for (int64_t from = 0; from < x.k; from += 32) {
    for (const auto& [of_a, of_b] : kProducts) {
      float halves[2] = {};
      for (int64_t p = from; p < std::min(x.k, from + 32); ++p) {
        halves[p % 2] =
            std::fma(parts_of(x.left(i, p))[of_a], parts_of(x.right(p, j))[of_b], halves[p % 2]);
      }
      sum += halves[0] + halves[1];
    }
  }
  return sum;
}

TEST_F(GemmInTilesTest, SumsHaveAFixedOrder) {
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{1, 5, 4}, {3, 40, 97}, {35, 40, 611}}) {
    for (const bool across : {false, true}) {
      const Operands x(m, n, k, across, across);
      const std::vector<float> c = x.in_tiles();
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) ASSERT_EQ(c[i * n + j], sum_in_order(x, i, j)) << i << j;
      }
    }
  }
}

TEST_F(GemmInTilesTest, BitsDoNotDependOnWorkersOrRowCount) {
  const Operands all(300, 200, 1111);
  std::vector<std::vector<float>> results;
  for (const int count : {1, 3}) {
    const Workers workers(count);
    results.push_back(all.in_tiles());
  }
  EXPECT_EQ(results[0], results[1]);
  for (const int64_t rows : {1, 2, 15, 16, 33, 100}) {
    Operands some = all;
    some.m = rows;
    const std::vector<float> c = some.in_tiles();
    EXPECT_TRUE(std::equal(c.begin(), c.end(), results[0].begin())) << rows;
  }
}

TEST_F(GemmInTilesTest, ValuesOutsideTheRangeOfBfloat16BecomeNaNOrZero) {
  Operands x(4, 3, 40);
  std::ranges::fill(x.a, 0.0F);
  std::ranges::fill(x.b, 1.0F);
  x.a[0 * x.k + 5] = std::numeric_limits<float>::infinity();
  x.a[1 * x.k + 5] = std::numeric_limits<float>::max();
  x.a[2 * x.k + 5] = std::numeric_limits<float>::denorm_min();
  x.a[3 * x.k + 5] = 0x1.FEp+127F;
  const std::vector<float> c = x.in_tiles();
  EXPECT_TRUE(std::isnan(c[0 * x.n]));
  EXPECT_TRUE(std::isnan(c[1 * x.n]));
  EXPECT_EQ(c[2 * x.n], 0);
  EXPECT_EQ(c[3 * x.n], 0x1.FEp+127F);
}

#endif

}  // namespace keel::kernels::gemm_tiles_test
