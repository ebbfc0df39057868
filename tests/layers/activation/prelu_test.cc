#include <keel/layers/activation/prelu.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>

#include "tests/layers/gradient_check.h"

namespace keel::prelu_test {

using layers::PReLU;
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

TEST(PReLUTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(
      PReLU({.alpha_initializer = "ones", .shared_axes = {{1}}, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 3, 2}));
}

TEST(PReLUTest, TakesARegularizerAndAConstraint) {
  const PReLU layer(
      {.alpha_initializer = "ones", .alpha_regularizer = "l2", .alpha_constraint = "non_neg"});
  layer(Tensor::zeros({1, 3}));
  ASSERT_EQ(layer->losses().size(), 1u);
  EXPECT_NEAR(layer->losses()[0].item<float>(), 0.03, 1e-7);
  EXPECT_TRUE(layer->alpha().constraint());
}

TEST(PReLUTest, RejectsAxesAndShapesThatDoNotFit) {
  EXPECT_THROW(PReLU({.shared_axes = {{0}}})(Tensor::zeros({1, 3})), ValueError);
  EXPECT_THROW(PReLU({.shared_axes = {{2}}})(Tensor::zeros({1, 3})), ValueError);
  EXPECT_THROW(PReLU({})(Tensor::zeros({3})), ValueError);
  EXPECT_THROW(PReLU({})(layers::input({.shape = {kUnknown}})), ValueError);
}

}  // namespace keel::prelu_test
