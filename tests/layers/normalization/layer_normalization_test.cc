#include "layers/normalization/layer_normalization.h"

#include "gtest/gtest.h"

#include "layers/input_layer.h"

namespace keel {
namespace {

using layers::LayerNormalization;
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

TEST(LayerNormalizationTest, RejectsBadOptionsAndInputs) {
  EXPECT_THROW(LayerNormalization({.epsilon = -1}), ValueError);
  EXPECT_THROW(LayerNormalization({.axis = {1, -1}})(Tensor::zeros({1, 2})), ValueError);
  EXPECT_THROW(LayerNormalization({})(layers::input({.shape = {kUnknown}})), ValueError);
}

}  // namespace
}  // namespace keel
