#include <keel/autodiff/internal/autocast.h>

#include <thread>

#include <gtest/gtest.h>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/kernels/gemm/gemm_bf16.h>

#include "tests/autodiff/small_tensors.h"

namespace keel::autocast_test {

using testing_support::normal;

// Returns op(a) op(b) as the bfloat16 kernel computes it.
std::vector<float> rounded_product(const Tensor& a, const Tensor& b, bool transpose_a = false,
                                   bool transpose_b = false) {
  const int64_t m = a.dim(transpose_a ? 1 : 0), n = b.dim(transpose_b ? 0 : 1);
  std::vector<float> out(m * n);
  kernels::gemm_bf16(a.data<float>().data(), b.data<float>().data(), out.data(), m, n,
                     a.dim(transpose_a ? 0 : 1), transpose_a, transpose_b);
  return out;
}

const Tensor x = normal({6, 5}, 1);
const Tensor w = normal({5, 4}, 2);

TEST(AutocastTest, ScopesNestAndHoldForOneThread) {
  EXPECT_FALSE(AutocastScope::bfloat16_products());
  {
    const AutocastScope on(true);
    EXPECT_TRUE(AutocastScope::bfloat16_products());
    {
      const AutocastScope off(false);
      EXPECT_FALSE(AutocastScope::bfloat16_products());
    }
    EXPECT_TRUE(AutocastScope::bfloat16_products());
    std::thread([] { EXPECT_FALSE(AutocastScope::bfloat16_products()); }).join();
  }
  EXPECT_FALSE(AutocastScope::bfloat16_products());
}

TEST(AutocastTest, ProductsTakeRoundedOperands) {
  const std::vector<float> exact = ops::matmul(x, w).to_vector<float>();
  const AutocastScope on(true);
  const std::vector<float> rounded = rounded_product(x, w);
  EXPECT_NE(rounded, exact);
  EXPECT_EQ(ops::matmul(x, w).to_vector<float>(), rounded);
  EXPECT_EQ(ops::dense(x, w, {}, false).to_vector<float>(), rounded);
  EXPECT_EQ(ops::einsum("ab,bc->ac", x, w).to_vector<float>(), rounded);
  // float64 products ignore the scope.
  const Tensor wide = ops::matmul(ops::cast(x, DType::kFloat64), ops::cast(w, DType::kFloat64));
  const Tensor difference = wide - ops::cast(Tensor::from(exact, {6, 4}), DType::kFloat64);
  for (const double d : difference.to_vector<double>()) EXPECT_LT(std::abs(d), 1e-5);
}

// Both gradients are products of rounded operands too, although gradient() runs outside the scope.
TEST(AutocastTest, GradientsAreThoseOfTheScopeOfTheProduct) {
  const Tensor dy = normal({6, 4}, 3);
  const auto expect_gradients = [&](const auto& product) {
    GradientTape tape;
    tape.watch(x);
    tape.watch(w);
    Tensor y;
    {
      const AutocastScope on(true);
      y = product();
    }
    const auto gradients = tape.input_gradient(y, {x, w}, {.output_gradient = dy});
    EXPECT_EQ(gradients[0].dense().template to_vector<float>(),
              rounded_product(dy, w, false, true));
    EXPECT_EQ(gradients[1].dense().template to_vector<float>(),
              rounded_product(x, dy, true, false));
  };
  expect_gradients([] { return ops::matmul(x, w); });
  expect_gradients([] { return ops::dense(x, w, Tensor::zeros({4}), false); });
  expect_gradients([] { return ops::einsum("ab,bc->ac", x, w); });
}

// Finite differences see the rounding as noise. With steps much wider than the rounding error, it
// averages out.
TEST(AutocastTest, GradientsAreCloseToExactOnes) {
  const auto gradient = [](bool rounds) {
    GradientTape tape;
    tape.watch(w);
    Tensor y;
    {
      const AutocastScope scope(rounds);
      y = ops::dense(ops::dense(x, w, Tensor::zeros({4}), true), normal({4, 3}, 4), {}, false);
    }
    return tape.input_gradient(ops::sum(y * y), {w})[0].dense().to_vector<float>();
  };
  const std::vector<float> exact = gradient(false), rounded = gradient(true);
  double difference = 0, size = 0;
  for (size_t i = 0; i < exact.size(); ++i) {
    difference += (exact[i] - rounded[i]) * (exact[i] - rounded[i]);
    size += exact[i] * exact[i];
  }
  EXPECT_LT(difference, 1e-4 * size);
  EXPECT_GT(difference, 0);
}

}  // namespace keel::autocast_test
