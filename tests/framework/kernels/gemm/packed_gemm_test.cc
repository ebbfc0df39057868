// Tests framework/kernels/gemm/gemm_panels.cc.
#include <keel/framework/kernels/gemm/packed_gemm.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include <keel/framework/kernels/gemm/gemm.h>

namespace keel::kernels::packed_gemm_test {

std::vector<float> numbers(int64_t count, uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> in(-1, 1);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& x : out) x = in(random);
  return out;
}

TEST(PackedGemm, HasTheBitsOfGemmForAnyNumberOfRowsAndColumns) {
  for (int64_t n : {1, 2, 15, 16, 17, 32, 48, 64, 65, 127, 128, 200, 512}) {
    for (int64_t k : {1, 13, 367, 600}) {
      const auto b = numbers(k * n, 1), bias = numbers(n, 2);
      const PackedMatrix packed(b.data(), bias.data(), k, n);
      for (int64_t m : {1, 2, 3, 4, 5, 7, 8, 14, 15, 33}) {
        const auto x = numbers(m * k, 3);
        std::vector<float> expected(m * n), y(m * n);
        gemm(x.data(), b.data(), expected.data(), m, n, k, false, false,
             {.bias = bias.data(), .relu = true});
        packed.multiply(x.data(), k, m, y.data(), n, true);
        EXPECT_EQ(y, expected) << m << " x " << n << " x " << k;
      }
    }
  }
}

// Zero factors are skipped only where the result does not change.
TEST(PackedGemm, HasTheBitsOfGemmWhereFactorsAreZero) {
  const float inf = std::numeric_limits<float>::infinity();
  for (int64_t n : {2, 64, 130, 256}) {
    for (int64_t k : {1, 40, 600, 5000}) {
      auto b = numbers(k * n, 1);
      for (const float odd : {0.0F, inf, std::nanf("")}) {
        if (odd != 0) b[b.size() / 2] = odd;
        const PackedMatrix packed(b.data(), nullptr, k, n);
        for (int kind = 0; kind < 4; ++kind) {
          auto x = numbers(k, 3);
          for (size_t i = 0; i < x.size(); ++i) {
            if (kind == 0 || (kind == 1 && i % 16 != 0) || (kind == 2 && x[i] < 0)) {
              x[i] = i % 3 == 0 ? -0.0F : 0.0F;
            }
          }
          if (kind == 2) x.back() = inf;
          std::vector<float> expected(n), y(n);
          gemm(x.data(), b.data(), expected.data(), 1, n, k, false, false);
          packed.multiply(x.data(), k, 1, y.data(), n, false);
          for (int64_t j = 0; j < n; ++j) {
            EXPECT_TRUE(std::isnan(y[j])
                            ? std::isnan(expected[j])
                            : std::bit_cast<uint32_t>(y[j]) == std::bit_cast<uint32_t>(expected[j]))
                << y[j] << " for " << expected[j] << ", " << n << " x " << k << ", " << kind;
          }
        }
      }
    }
  }
}

TEST(PackedGemm, AccessesOnlyTheRowsOfStridedMatrices) {
  constexpr int64_t kM = 9, kN = 70, kK = 21, kXStride = 30, kYStride = 81;
  const auto b = numbers(kK * kN, 1), wide = numbers(kM * kXStride, 2);
  std::vector<float> x, expected(kM * kN), y(kM * kYStride, 7);
  for (int64_t i = 0; i < kM; ++i) {
    x.insert(x.end(), wide.begin() + i * kXStride, wide.begin() + i * kXStride + kK);
  }
  gemm(x.data(), b.data(), expected.data(), kM, kN, kK, false, false);
  PackedMatrix(b.data(), nullptr, kK, kN)
      .multiply(wide.data(), kXStride, kM, y.data(), kYStride, false);
  for (int64_t i = 0; i < kM; ++i) {
    for (int64_t j = 0; j < kYStride; ++j) {
      EXPECT_EQ(y[i * kYStride + j], j < kN ? expected[i * kN + j] : 7) << i << ", " << j;
    }
  }
}

TEST(PackedGemm, WritesNothingForZeroRows) {
  const auto b = numbers(6, 1);
  PackedMatrix(b.data(), nullptr, 2, 3).multiply(nullptr, 2, 0, nullptr, 3, true);
}

}  // namespace keel::kernels::packed_gemm_test
