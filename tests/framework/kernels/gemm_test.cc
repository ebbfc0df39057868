#include "framework/kernels/gemm.h"

#include <cmath>
#include <random>
#include <vector>

#include "gtest/gtest.h"

#include "framework/parallel.h"

namespace keel::kernels {
namespace {

template <class T>
std::vector<T> random_matrix(int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<T> normal;
  std::vector<T> out(size);
  for (T& v : out) v = normal(random);
  return out;
}

template <class T>
void expect_product(int64_t m, int64_t n, int64_t k, bool transpose_a, bool transpose_b) {
  const std::vector<T> a = random_matrix<T>(m * k, 1);
  const std::vector<T> b = random_matrix<T>(k * n, 2);
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

TEST(GemmTest, FourWaysOfTransposingAgreeWithTheDefinition) {
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
  const int64_t m = 700;
  const int64_t n = 40;
  const int64_t k = 50;
  const std::vector<float> a = random_matrix<float>(m * k, 1);
  const std::vector<float> b = random_matrix<float>(k * n, 2);
  std::vector<std::vector<float>> results;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    gemm(a.data(), b.data(), results.emplace_back(m * n).data(), m, n, k, false, false);
  }
  set_num_workers(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

}  // namespace
}  // namespace keel::kernels
