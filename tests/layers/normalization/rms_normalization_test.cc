#include <keel/layers/normalization/rms_normalization.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>

#include "tests/layers/gradient_check.h"

namespace keel::rms_normalization_test {

using layers::RMSNormalization;

TEST(RMSNormalizationTest, DividesByTheRootMeanSquare) {
  const RMSNormalization layer({.epsilon = 0});
  const Tensor y = layer(Tensor::from<float>({1, 7}, {1, 2}));
  EXPECT_NEAR(y.data<float>()[0], 0.2, 1e-6);
  EXPECT_NEAR(y.data<float>()[1], 1.4, 1e-6);
  EXPECT_EQ(layer->weights()[0].name(), "scale");
}

TEST(RMSNormalizationTest, TheScaleHasTheDimensionsOfTheAxes) {
  const RMSNormalization layer({.axis = {1, 2}});
  layer(layers::input({.shape = {3, 4}}));
  EXPECT_EQ(layer->weights()[0].shape(), Shape({3, 4}));
}

TEST(RMSNormalizationTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(RMSNormalization({.dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({2, 3, 2}));
}

TEST(RMSNormalizationTest, RejectsBadOptionsAndInputs) {
  EXPECT_THROW(RMSNormalization({.epsilon = -1}), ValueError);
  EXPECT_THROW(RMSNormalization({.axis = 2})(Tensor::zeros({1, 2})), ValueError);
  EXPECT_THROW(RMSNormalization({})(layers::input({.shape = {kUnknown}})), ValueError);
}

}  // namespace keel::rms_normalization_test
