#include <keel/framework/kernels/gemm/gemm.h>

#include <Eigen/Core>
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/base/parallel.h>

#include "tests/support/random_values.h"

namespace keel::kernels::gemm_test {

using testing_support::random_values;

template <class T>
void expect_product(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
  const std::vector<T> a = random_values<T>(m * k, 1);
  const std::vector<T> b = random_values<T>(k * n, 2);
  std::vector<T> c(m * n, T{7});
  gemm(a.data(), b.data(), c.data(), m, n, k, transpose_a, transpose_b);
  const double tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      double size = 1;
      for (int64_t p = 0; p < k; ++p) {
        const double x = transpose_a ? a[p * m + i] : a[i * k + p];
        const double y = transpose_b ? b[j * k + p] : b[p * n + j];
        sum += x * y;
        size += std::abs(x * y);
      }
      ASSERT_NEAR(c[i * n + j], sum, tolerance * size) << i << " " << j;
    }
  }
}

TEST(GemmTest, AllTranspositionsAgreeWithTheDefinition) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      expect_product<float>(5, 3, 7, transpose_a, transpose_b);
      expect_product<float>(300, 17, 33, transpose_a, transpose_b);
      expect_product<float>(1, 64, 20, transpose_a, transpose_b);
      expect_product<double>(5, 3, 7, transpose_a, transpose_b);
      expect_product<double>(270, 4, 9, transpose_a, transpose_b);
    }
  }
}

TEST(GemmTest, ProductsOfDoubleAgreeWithEigen) {
  using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
  for (int64_t size = 1; size < 40; size += 3) {
    const int64_t m = size % 11 + 1, n = size, k = 3 * size % 50 + 1;
    const std::vector<double> a = random_values<double>(m * k, 1);
    const std::vector<double> b = random_values<double>(k * n, 2);
    std::vector<double> c(m * n);
    gemm(a.data(), b.data(), c.data(), m, n, k, true, true);
    const Matrix expected = Eigen::Map<const Matrix>(a.data(), k, m).transpose() *
                            Eigen::Map<const Matrix>(b.data(), n, k).transpose();
    EXPECT_TRUE(expected.isApprox(Eigen::Map<const Matrix>(c.data(), m, n), 1e-13)) << size;
  }
}

// The order of the sums is part of the contract: the bits are the same on every machine.
#if defined(__FMA__) || defined(__aarch64__)
TEST(GemmTest, SumsOfDoubleAreChainsOfFusedMultiplyAdds) {
  constexpr int64_t m = 9, n = 21, k = 50;
  const std::vector<double> a = random_values<double>(m * k, 1);
  const std::vector<double> b = random_values<double>(k * n, 2);
  std::vector<double> c(m * n);
  gemm(a.data(), b.data(), c.data(), m, n, k, false, false);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) sum = std::fma(a[i * k + p], b[p * n + j], sum);
      ASSERT_EQ(c[i * n + j], sum) << i << " " << j;
    }
  }
}

TEST(GemmTest, ProductsWithAVectorHaveTheSumsOfTheWidestRegisters) {
  for (const int64_t k : {5, 16, 31, 63, 64, 79, 200, 1000}) {
    const std::vector<float> x = random_values<float>(k, 1), y = random_values<float>(k, 2);
    float sums[4][16] = {};
    int64_t p = 0;
    const auto add = [&](int row) {
      for (float& sum : sums[row]) {
        sum = std::fma(x[p], y[p], sum);
        ++p;
      }
    };
    while (p + 64 <= k) {
      for (int row = 0; row < 4; ++row) add(row);
    }
    while (p + 16 <= k) add(0);
    float expected = 0;
    for (int lane = 0; lane < 16; ++lane) {
      expected += (sums[0][lane] + sums[1][lane]) + (sums[2][lane] + sums[3][lane]);
    }
    for (; p < k; ++p) expected += x[p] * y[p];
    float found = 0;
    gemm(x.data(), y.data(), &found, 1, 1, k, false, false);
    EXPECT_EQ(found, expected) << k;
  }
}
#endif

TEST(GemmTest, EveryWidthAndHeightOfATileAgreesWithTheDefinition) {
  for (int64_t n = 1; n <= 70; n += 3) expect_product<float>(n % 17 + 1, n, 19, false, n % 2 == 0);
  for (int64_t m = 1; m <= 30; ++m) expect_product<float>(m, 35, 21, m % 2 == 0, false);
  for (const int64_t m : {1, 2, 3, 5, 7}) expect_product<float>(m, 200, 40, false, false);
}

TEST(GemmTest, LongSumsAndStepsOf4KiBAgreeWithTheDefinition) {
  expect_product<float>(33, 40, 1300, false, false);
  expect_product<float>(40, 33, 1300, true, false);
  expect_product<float>(33, 40, 1300, false, true);
  expect_product<float>(70, 1024, 20, false, false);
  expect_product<float>(20, 130, 1024, false, false);
  expect_product<float>(1, 1024, 1024, false, false);
  expect_product<float>(1, 1024, 1024, false, true);
  expect_product<float>(1024, 1, 700, true, false);
}

TEST(GemmTest, ManyRowsAgreeWithTheDefinition) {
  for (const bool transpose_b : {false, true}) {
    expect_product<float>(512, 70, 33, false, transpose_b);
    expect_product<float>(700, 20, 1030, false, transpose_b);
    expect_product<float>(600, 150, 5, false, transpose_b);
  }
}

TEST(GemmTest, ManyColumnsOfATransposedOperandAgreeWithTheDefinition) {
  for (const bool transpose_b : {false, true}) {
    expect_product<float>(300, 150, 1000, true, transpose_b);
    expect_product<float>(300, 140, 1000, true, transpose_b);
    expect_product<float>(520, 130, 515, true, transpose_b);
  }
}

TEST(GemmTest, BiasAndReluComeLast) {
  for (const bool relu : {false, true}) {
    for (const auto& [m, n, k] : {std::array<int64_t, 3>{20, 37, 600},
                                  {1, 37, 8},
                                  {9, 1, 30},
                                  {3, 2, 0},
                                  {600, 40, 3},
                                  {520, 37, 600}}) {
      for (const bool transpose_b : {false, true}) {
        const std::vector<float> a = random_values(m * k, 1);
        const std::vector<float> b = random_values(k * n, 2);
        const std::vector<float> bias = random_values(n, 3);
        std::vector<float> plain(m * n), c(m * n);
        gemm(a.data(), b.data(), plain.data(), m, n, k, false, transpose_b);
        gemm(a.data(), b.data(), c.data(), m, n, k, false, transpose_b,
             {.bias = bias.data(), .relu = relu});
        for (int64_t i = 0; i < m * n; ++i) {
          const float sum = plain[i] + bias[i % n];
          ASSERT_EQ(c[i], relu && sum < 0 ? 0 : sum) << m << " " << n << " " << k;
        }
      }
    }
  }
}

TEST(GemmTest, BitsOfARowDoNotDependOnOtherRows) {
  const int64_t m = 700, n = 50, k = 1100;
  const std::vector<float> a = random_values(m * k, 1);
  const std::vector<float> b = random_values(k * n, 2);
  std::vector<float> all(m * n), some(m * n);
  gemm(a.data(), b.data(), all.data(), m, n, k, false, false);
  for (int64_t i = 0, rows = 1; i < m; i += rows, rows = std::min<int64_t>(rows + 1, m - i)) {
    gemm(a.data() + i * k, b.data(), some.data() + i * n, rows, n, k, false, false);
  }
  EXPECT_EQ(all, some);
}

TEST(GemmTest, AProductOverNothingIsZero) {
  std::vector<float> c(6, 3);
  gemm(static_cast<const float*>(nullptr), nullptr, c.data(), 2, 3, 0, false, false);
  EXPECT_EQ(c, std::vector<float>(6));
}

TEST(GemmTest, AnEmptyProductWritesNothing) {
  float guard = 5;
  gemm(&guard, &guard, &guard, 0, 1, 1, false, false);
  gemm(&guard, &guard, &guard, 1, 0, 1, false, false);
  EXPECT_EQ(guard, 5);
}

TEST(GemmTest, BitsDoNotDependOnTheNumberOfWorkers) {
  const int before = num_workers();
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{700, 40, 50},
                                {300, 200, 100},
                                {2100, 3, 20},
                                {70, 1, 90000},
                                {600, 150, 500},
                                {300, 140, 1000}}) {
    const std::vector<float> a = random_values(m * k, 1);
    const std::vector<float> b = random_values(k * n, 2);
    for (const bool transpose_a : {false, true}) {
      std::vector<std::vector<float>> results;
      for (const int workers : {1, 2, 4}) {
        set_num_workers(workers);
        gemm(a.data(), b.data(), results.emplace_back(m * n).data(), m, n, k, transpose_a, false);
      }
      EXPECT_EQ(results[0], results[1]);
      EXPECT_EQ(results[0], results[2]);
    }
  }
  set_num_workers(before);
}

}  // namespace keel::kernels::gemm_test
