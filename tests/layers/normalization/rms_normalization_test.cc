#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/normalization/layer_normalization.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::rms_normalization_test {

using layers::RMSNormalization;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

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

TEST(RMSNormalizationTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(RMSNormalization({.dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({2, 3, 2}));
}

TEST(RMSNormalizationTest, RejectsInvalidOptionsAndInputs) {
  EXPECT_THROW(RMSNormalization({.epsilon = -1}), ValueError);
  EXPECT_THROW(RMSNormalization({.axis = 2})(Tensor::zeros({1, 2})), ValueError);
  EXPECT_THROW(RMSNormalization({})(layers::input({.shape = {kUnknown}})), ValueError);
}

TEST(RMSNormalizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "RMSNormalization",
                         .config = R"({"axis": [-1]})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3}),
                         .trainable_weights = 1,
                         .weights = 1});
}

}  // namespace keel::rms_normalization_test
