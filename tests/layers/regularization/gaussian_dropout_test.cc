#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/support/layer_contract.h"

namespace keel::gaussian_dropout_test {

using layers::GaussianDropout;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(GaussianDropoutTest, MultipliesByNormalNumbersAroundOne) {
  const Tensor x = Tensor::full<float>({100'000}, 2);
  const Tensor y = GaussianDropout({.rate = 0.2, .seed = 2})(x, {.training = true});
  EXPECT_NEAR(ops::mean(y).item<float>(), 2, 0.02);
  // (2 sqrt(0.2 / 0.8))^2.
  EXPECT_NEAR(ops::mean(ops::square(y - x)).item<float>(), 1, 0.03);
}

TEST(GaussianDropoutTest, TheGradientIsTheNoiseFactor) {
  const Tensor x = Tensor::full<float>({30}, 1);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = GaussianDropout({.rate = 0.2})(x, {.training = true});
  EXPECT_EQ(tape.input_gradient(ops::sum(y), {x})[0].dense().to_vector<float>(),
            y.to_vector<float>());
}

TEST(GaussianDropoutTest, RejectsRatesOutOfRange) {
  EXPECT_THROW(GaussianDropout({.rate = -0.1}), ValueError);
  EXPECT_THROW(GaussianDropout({.rate = 1}), ValueError);
}

TEST(GaussianDropoutTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "GaussianDropout",
                         .config = R"({"rate": 0.5})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::gaussian_dropout_test
