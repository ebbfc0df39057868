#include <keel/layers/normalization/layer_normalization.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::layer_normalization_test {

using layers::LayerNormalization;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

TEST(LayerNormalizationTest, NormalizesEachSample) {
  const LayerNormalization layer({.epsilon = 0});
  const Tensor x = Tensor::from<float>({1, 3, 10, 30}, {2, 2});
  EXPECT_EQ(layer(x).to_vector<float>(), (Values{-1, 1, -1, 1}));
}

TEST(LayerNormalizationTest, WeightsHaveTheDimensionsOfTheAxes) {
  const LayerNormalization layer({.axis = {-1, 1}});
  layer(layers::input({.shape = {3, 4}}));
  EXPECT_EQ(layer->weights()[0].shape(), Shape({3, 4}));
  const LayerNormalization inner({.axis = 1});
  inner(layers::input({.shape = {3, 4}}));
  EXPECT_EQ(inner->weights()[0].shape(), Shape({3}));
}

TEST(LayerNormalizationTest, CenterAndScaleAreOptional) {
  const LayerNormalization layer({.center = false});
  layer(Tensor::zeros({1, 2}));
  ASSERT_EQ(layer->weights().size(), 1u);
  EXPECT_EQ(layer->weights()[0].name(), "gamma");
}

TEST(LayerNormalizationTest, RmsScalingDividesByTheDeviationAlone) {
  const LayerNormalization layer(
      {.epsilon = 0, .center = true, .scale = false, .rms_scaling = true});
  EXPECT_EQ(layer(Tensor::from<float>({1, 3}, {1, 2})).to_vector<float>(), (Values{1, 3}));
  ASSERT_EQ(layer->weights().size(), 1u);
  EXPECT_EQ(layer->weights()[0].name(), "gamma");
}

TEST(LayerNormalizationTest, GradientsMatchFiniteDifferences) {
  for (const bool rms_scaling : {false, true}) {
    testing_support::expect_gradients_are_slopes(
        LayerNormalization({.axis = {1, 2}, .rms_scaling = rms_scaling, .dtype = DType::kFloat64}),
        testing_support::distinct_doubles({2, 2, 2}));
  }
}

TEST(LayerNormalizationTest, TheAxesMayBeAny) {
  for (const Axes& axes : {Axes(0), Axes(1), Axes({0, 2}), Axes({0, 1, 2})}) {
    testing_support::expect_gradients_are_slopes(
        LayerNormalization({.axis = axes, .dtype = DType::kFloat64}),
        testing_support::distinct_doubles({2, 3, 4}));
  }
  const LayerNormalization layer({.axis = 1, .epsilon = 0});
  const Tensor x = Tensor::from<float>({1, 10, 3, 30}, {1, 2, 2});
  EXPECT_EQ(layer(x).to_vector<float>(), (Values{-1, -1, 1, 1}));
}

TEST(LayerNormalizationTest, RejectsOtherDimensionsAlongTheAxes) {
  const LayerNormalization layer({});
  layer(Tensor::zeros({2, 3}));
  EXPECT_EQ(layer(Tensor::zeros({0, 3})).shape(), Shape({0, 3}));
  EXPECT_THROW(layer(Tensor::zeros({2, 1})), ValueError);
  EXPECT_THROW(layer(layers::input({.shape = {4}})), ValueError);
}

TEST(LayerNormalizationTest, AcceptsRegularizersAndConstraintsAndKeepsMasks) {
  const LayerNormalization layer({.beta_regularizer = "l1",
                                  .gamma_regularizer = "l2",
                                  .beta_constraint = "unit_norm",
                                  .gamma_constraint = "non_neg"});
  EXPECT_TRUE(layer(Tensor::zeros({1, 2}).with_mask(Tensor::full<bool>({1}, true))).mask());
  EXPECT_EQ(layer->losses().size(), 2u);
  for (const Variable& v : layer->trainable_variables()) EXPECT_TRUE(v.constraint()) << v.name();
}

TEST(LayerNormalizationTest, RejectsInvalidOptionsAndInputs) {
  EXPECT_THROW(LayerNormalization({.epsilon = -1}), ValueError);
  EXPECT_THROW(LayerNormalization({.axis = {1, -1}})(Tensor::zeros({1, 2})), ValueError);
  EXPECT_THROW(LayerNormalization({})(layers::input({.shape = {kUnknown}})), ValueError);
}

TEST(LayerNormalizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "LayerNormalization",
                         .config = R"({"axis": [-1]})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::layer_normalization_test
