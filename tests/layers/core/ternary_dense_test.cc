#include <keel/layers/core/ternary_dense.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::ternary_dense_test {

using layers::TernaryDense;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::message_of;
using Floats = std::vector<float>;

TernaryDense with_kernel(TernaryDenseOptions options, const Floats& kernel) {
  options.units = 2;
  const TernaryDense layer(std::move(options));
  layer->build(testing_support::float_spec({kUnknown, 2}));
  layer->kernel().assign(Tensor::from(kernel, {2, 2}));
  return layer;
}

TEST(TernaryDenseTest, ScalesByTheMeanMagnitudeWithoutAThreshold) {
  // The mean of |kernel| is 0.5, so the threshold is 0.25.
  const TernaryDense layer = with_kernel({.use_bias = false}, {0.7F, -0.9F, 0.2F, 0.2F});
  const Tensor y = layer(Tensor::from<float>({2, 3}, {1, 2}));
  EXPECT_EQ(y.to_vector<float>(), Floats({1, -1}));
}

TEST(TernaryDenseTest, KeepsWeightsAboveTheThreshold) {
  const TernaryDense layer = with_kernel({.threshold = 0.5, .use_bias = false}, {1, -1, 0.5F, 1});
  const Tensor y = layer(Tensor::from<float>({2, 3}, {1, 2}));
  EXPECT_EQ(y.to_vector<float>(), Floats({2, 1}));
}

TEST(TernaryDenseTest, GradientsPassTheThreshold) {
  const TernaryDense layer = with_kernel({.threshold = 0.5}, {1, -1, 0.25F, 1});
  GradientTape tape;
  const Tensor y = layer(Tensor::from<float>({2, 3}, {1, 2}));
  const auto gradients = tape.gradient(ops::sum(y), {layer->kernel(), layer->bias()});
  EXPECT_EQ(gradients[0].dense().to_vector<float>(), Floats({2, 2, 3, 3}));
  EXPECT_EQ(gradients[1].dense().to_vector<float>(), Floats({1, 1}));
}

TEST(TernaryDenseTest, RejectsInvalidOptions) {
  EXPECT_THAT(message_of([] { TernaryDense({.units = 0}); }), HasSubstr("units must be positive"));
  EXPECT_THAT(message_of([] { TernaryDense({.units = 1, .threshold = -0.5}); }),
              HasSubstr("threshold must not be negative, received -0.5"));
}

TEST(TernaryDenseTest, Contract) {
  expect_layer_contract({.class_name = "TernaryDense",
                         .config = R"({"units": 4, "threshold": 0.1, "activation": "tanh"})",
                         .inputs = testing_support::float_spec({2, 3}),
                         .output = testing_support::float_spec({2, 4}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::ternary_dense_test
