#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/support/layer_contract.h"

namespace keel::gaussian_noise_test {

using layers::GaussianNoise;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(GaussianNoiseTest, AddsNormalNumbers) {
  const Tensor x = Tensor::full<float>({100'000}, 2);
  const Tensor y = GaussianNoise({.stddev = 0.5, .seed = 2})(x, {.training = true});
  EXPECT_NEAR(ops::mean(y).item<float>(), 2, 0.01);
  EXPECT_NEAR(ops::mean(ops::square(y - x)).item<float>(), 0.25, 0.01);
}

TEST(GaussianNoiseTest, TheGradientPasses) {
  const Tensor x = Tensor::full<float>({3}, 2);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = GaussianNoise({.stddev = 0.5})(x, {.training = true});
  EXPECT_EQ(tape.input_gradient(ops::sum(y), {x})[0].dense().to_vector<float>(),
            (std::vector<float>{1, 1, 1}));
}

TEST(GaussianNoiseTest, ZeroDeviationAddsNoNoise) {
  const Tensor x = Tensor::zeros({3});
  EXPECT_EQ(GaussianNoise({})(x, {.training = true}).id(), x.id());
}

TEST(GaussianNoiseTest, RejectsDeviationsOutOfRange) {
  EXPECT_THROW(GaussianNoise({.stddev = -0.1}), ValueError);
  EXPECT_THROW(GaussianNoise({.stddev = 1.5}), ValueError);
}

TEST(GaussianNoiseTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "GaussianNoise",
                         .config = R"({"stddev": 0.5})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::gaussian_noise_test
