// Only float32 products of training steps use the selected MatmulPrecision.
#include <keel/framework/matmul_precision.h>

#include <vector>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/kernels/gemm/gemm.h>

#include "tests/autodiff/small_tensors.h"

namespace keel::autodiff_matmul_precision_test {

using testing_support::normal;

constexpr auto kPlain = MatmulPrecision::kHighest;
constexpr auto kParts = MatmulPrecision::kHigh;

using Values = std::vector<float>;

Values product(const Tensor& a, const Tensor& b, MatmulPrecision products, bool transpose_a = false,
               bool transpose_b = false) {
  const int64_t m = a.dim(transpose_a ? 1 : 0), n = b.dim(transpose_b ? 0 : 1);
  Values out(m * n);
  kernels::gemm(a.data<float>().data(), b.data<float>().data(), out.data(), m, n,
                a.dim(transpose_a ? 0 : 1), transpose_a, transpose_b, {}, products);
  return out;
}

class MatmulPrecisionOfTrainingTest : public testing::Test {
 protected:
  ~MatmulPrecisionOfTrainingTest() override { set_matmul_precision(before_); }

  const MatmulPrecision before_ = matmul_precision();
  const Tensor x = normal({300, 200}, 1), w = normal({200, 160}, 2), dy = normal({300, 160}, 3);
};

TEST_F(MatmulPrecisionOfTrainingTest, ApplyWhileATapeIsInUse) {
  for (const MatmulPrecision asked : {kParts, kPlain}) {
    set_matmul_precision(asked);
    const auto expect_all = [&](const Values& expected) {
      EXPECT_EQ(ops::matmul(x, w).to_vector<float>(), expected);
      EXPECT_EQ(ops::dense(x, w, {}, false).to_vector<float>(), expected);
      EXPECT_EQ(ops::einsum("ab,bc->ac", x, w).to_vector<float>(), expected);
    };
    expect_all(product(x, w, kPlain));
    {
      GradientTape tape;
      expect_all(product(x, w, asked));
      {
        const auto pause = tape.stop_recording();
        expect_all(product(x, w, asked));
      }
      // Evaluation and prediction run under NoGradient, even if a tape exists.
      const NoGradient no_step;
      expect_all(product(x, w, kPlain));
    }
    expect_all(product(x, w, kPlain));
  }
}

TEST_F(MatmulPrecisionOfTrainingTest, ApplyToGradients) {
  using Product = Tensor (*)(const Tensor&, const Tensor&);
  const std::vector<Product> all = {
      [](const Tensor& a, const Tensor& b) { return ops::matmul(a, b); },
      [](const Tensor& a, const Tensor& b) { return ops::dense(a, b, {}, false); }};
  for (const MatmulPrecision asked : {kParts, kPlain}) {
    set_matmul_precision(asked);
    for (const Product& multiply : all) {
      GradientTape tape;
      tape.watch(x);
      tape.watch(w);
      const Tensor y = multiply(x, w);
      const std::vector<Gradient> found = tape.input_gradient(y, {x, w}, {.output_gradient = dy});
      EXPECT_EQ(found[0].dense().to_vector<float>(), product(dy, w, asked, false, true));
      EXPECT_EQ(found[1].dense().to_vector<float>(), product(x, dy, asked, true, false));
      // The tape is no longer in use after gradient().
      EXPECT_EQ(multiply(x, w).to_vector<float>(), product(x, w, kPlain));
    }
  }
}

}  // namespace keel::autodiff_matmul_precision_test
