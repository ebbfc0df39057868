#include <cmath>

#include <gtest/gtest.h>

#include <keel/layers/normalization/layer_normalization.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::unit_normalization_test {

using layers::UnitNormalization;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(UnitNormalizationTest, ScalesToLengthOne) {
  const Tensor y = UnitNormalization({})(Tensor::from<float>({3, 4, 0, 0}, {2, 2}));
  EXPECT_NEAR(y.data<float>()[0], 0.6, 1e-6);
  EXPECT_NEAR(y.data<float>()[1], 0.8, 1e-6);
  EXPECT_EQ(y.data<float>()[2], 0);
  const Tensor small = UnitNormalization({})(Tensor::from<float>({3e-8F, 4e-8F}, {1, 2}));
  EXPECT_NEAR(small.data<float>()[0], 0.6, 1e-6);
}

TEST(UnitNormalizationTest, AcceptsSeveralAxes) {
  const Tensor y = UnitNormalization({.axis = {1, 2}})(Tensor::full<float>({1, 2, 2}, 3));
  EXPECT_NEAR(y.data<float>()[3], 0.5, 1e-6);
}

TEST(UnitNormalizationTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(UnitNormalization({.dtype = DType::kFloat64}),
                                               testing_support::distinct_doubles({2, 3, 2}));
}

TEST(UnitNormalizationTest, TheGradientOfAZeroVectorIsFinite) {
  const Tensor x = Tensor::zeros({1, 2});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = UnitNormalization({})(x);
  const Tensor gradient = tape.input_gradient(ops::sum(y), {x})[0].dense();
  EXPECT_TRUE(std::isfinite(gradient.data<float>()[0]));
}

TEST(UnitNormalizationTest, KeepsMasksAndRejectsAxesOutOfRange) {
  const Tensor x = Tensor::zeros({1, 2}).with_mask(Tensor::full<bool>({1}, true));
  EXPECT_TRUE(UnitNormalization({})(x).mask());
  EXPECT_THROW(UnitNormalization({.axis = 2})(x), ValueError);
}

TEST(UnitNormalizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "UnitNormalization",
                         .config = "{}",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::unit_normalization_test
