#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/support/layer_contract.h"

namespace keel::alpha_dropout_test {

using layers::AlphaDropout;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

constexpr double kLeastOfSelu = -1.7580993408473766;

TEST(AlphaDropoutTest, KeepsMeanAndVariance) {
  std::vector<float> values(200'000);
  RandomStream{.seed = 5}.normal(values, 0, 0, 1);
  const Tensor x = Tensor::from(values, {200'000});
  const Tensor y = AlphaDropout({.rate = 0.3, .seed = 2})(x, {.training = true});
  const double mean = ops::mean(y).item<float>();
  EXPECT_NEAR(mean, 0, 0.02);
  EXPECT_NEAR(ops::mean(ops::square(y)).item<float>() - mean * mean, 1, 0.02);
}

TEST(AlphaDropoutTest, ElementsAreScaledOrSetToOneValue) {
  const double a = 1 / std::sqrt(0.5 * (1 + 0.5 * kLeastOfSelu * kLeastOfSelu));
  const double b = -a * kLeastOfSelu * 0.5;
  const Tensor x = Tensor::full<float>({1000}, 3);
  const Tensor y = AlphaDropout({.rate = 0.5, .seed = 2})(x, {.training = true});
  int64_t dropped = 0;
  for (float v : y.data<float>()) {
    const bool is_dropped = std::abs(v - (a * kLeastOfSelu + b)) < 1e-5;
    dropped += is_dropped ? 1 : 0;
    EXPECT_NEAR(v, a * (is_dropped ? kLeastOfSelu : 3) + b, 1e-5);
  }
  EXPECT_NEAR(static_cast<double>(dropped), 500, 80);
}

TEST(AlphaDropoutTest, OneChoiceForAllAlongANoiseShape) {
  const AlphaDropout layer({.rate = 0.5, .noise_shape = {{kUnknown, 1}}, .seed = 3});
  const Tensor y = layer(Tensor::full<float>({50, 2}, 3), {.training = true});
  for (int64_t i = 0; i < 50; ++i) EXPECT_EQ(y.data<float>()[2 * i], y.data<float>()[2 * i + 1]);
}

TEST(AlphaDropoutTest, RejectsInvalidOptions) {
  EXPECT_THROW(AlphaDropout({.rate = 1}), ValueError);
  EXPECT_THROW(AlphaDropout({.rate = -0.1}), ValueError);
  EXPECT_THROW(AlphaDropout({.noise_shape = {{kUnknown, 0}}}), ValueError);
}

TEST(AlphaDropoutTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "AlphaDropout",
                         .config = R"({"rate": 0.5, "noise_shape": [null, 1]})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::alpha_dropout_test
