#include <gtest/gtest.h>

#include <keel/layers/activation/activation.h>
#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::prelu_test {

using layers::PReLU;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

TEST(PReLUTest, LearnsASlopeForEachFeature) {
  const PReLU layer({});
  const Tensor x = Tensor::from<float>({-2, -2, 3, 0}, {2, 2});
  EXPECT_EQ(layer(x).to_vector<float>(), (Values{0, 0, 3, 0}));
  layer->alpha().assign(Tensor::from<float>({0.5, 2}, {2}));
  EXPECT_EQ(layer(x).to_vector<float>(), (Values{-1, -4, 3, 0}));
}

TEST(PReLUTest, SharesSlopesAlongAxes) {
  const PReLU layer({.alpha_initializer = "ones", .shared_axes = {{1}}});
  layer(layers::input({.shape = {kUnknown, 3}}));
  EXPECT_EQ(layer->alpha().shape(), Shape({1, 3}));
  const PReLU all({.shared_axes = {{1, 2}}});
  all(layers::input({.shape = {kUnknown, kUnknown}}));
  EXPECT_EQ(all->alpha().shape(), Shape({1, 1}));
}

TEST(PReLUTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      PReLU({.alpha_initializer = "ones", .shared_axes = {{1}}, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 3, 2}));
}

TEST(PReLUTest, AcceptsARegularizerAndAConstraint) {
  const PReLU layer(
      {.alpha_initializer = "ones", .alpha_regularizer = "l2", .alpha_constraint = "non_neg"});
  layer(Tensor::zeros({1, 3}));
  ASSERT_EQ(layer->losses().size(), 1u);
  EXPECT_NEAR(layer->losses()[0].item<float>(), 0.03, 1e-7);
  EXPECT_TRUE(layer->alpha().constraint());
}

TEST(PReLUTest, RejectsIncompatibleAxesAndShapes) {
  EXPECT_THROW(PReLU({.shared_axes = {{0}}})(Tensor::zeros({1, 3})), ValueError);
  EXPECT_THROW(PReLU({.shared_axes = {{2}}})(Tensor::zeros({1, 3})), ValueError);
  EXPECT_THROW(PReLU({})(Tensor::zeros({3})), ValueError);
  EXPECT_THROW(PReLU({})(layers::input({.shape = {kUnknown}})), ValueError);
}

TEST(PReLUTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "PReLU",
                         .config = R"({"shared_axes": [1]})",
                         .inputs = float_spec({2, 3, 4}),
                         .output = float_spec({2, 3, 4}),
                         .trainable_weights = 1,
                         .weights = 1});
}

}  // namespace keel::prelu_test
