// Tests that layers and metrics compare data with configured numbers in float32, as Keras does.
// Float 0.1 is greater than the number 0.1, and float 0.7 is less than 0.7, so that comparisons in
// double would decide differently at the constants themselves. Discretization has tests of its own.
#include <gtest/gtest.h>

#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/layers/activation/activation.h>
#include <keel/layers/activations.h>
#include <keel/layers/core/core.h>
#include <keel/layers/metrics/accuracy.h>
#include <keel/layers/metrics/classification.h>
#include <keel/layers/metrics/confusion/confusion.h>
#include <keel/layers/metrics/segmentation.h>

#include "tests/support/tensors.h"

namespace keel::decimal_constants_test {

using testing_support::floats;
using Floats = std::vector<float>;

Tensor constants() { return floats({0.1F, 0.7F}, {1, 2}); }

TEST(DecimalConstantsTest, ActivationsAreExclusiveOfTheThreshold) {
  for (const double threshold : {0.1, 0.7}) {
    const Tensor x = Tensor::full<float>({1, 1}, static_cast<float>(threshold));
    // x > threshold is false; x - threshold is 0.
    EXPECT_EQ(layers::ReLU({.threshold = threshold})(x).item<float>(), 0);
    EXPECT_EQ(layers::ReLU({.negative_slope = 0.5, .threshold = threshold})(x).item<float>(), 0);
    EXPECT_EQ(activations::threshold(x, threshold, 9).item<float>(), 9);
    EXPECT_EQ(activations::hard_shrink(x, threshold).item<float>(), 0);
    EXPECT_EQ(activations::soft_shrink(x, threshold).item<float>(), 0);
  }
}

TEST(DecimalConstantsTest, LimitsAreFloats) {
  EXPECT_EQ(layers::ReLU({.max_value = 0.7})(floats({1}, {1, 1})).item<float>(), 0.7F);
  EXPECT_EQ(keras_ops::clip(floats({0, 1}, {2}), 0.1, 0.7).to_vector<float>(),
            (Floats{0.1F, 0.7F}));
}

TEST(DecimalConstantsTest, NumbersOfFunctionsHaveTheDtypeOfTheTensor) {
  const Tensor x = constants();
  EXPECT_EQ(keras_ops::equal(x, 0.1).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(keras_ops::greater(x, 0.1).to_vector<bool>(), (std::vector<bool>{false, true}));
  EXPECT_EQ(keras_ops::less(x, 0.7).to_vector<bool>(), (std::vector<bool>{true, false}));
  EXPECT_EQ(keras_ops::isin(x, 0.7).to_vector<bool>(), (std::vector<bool>{false, true}));
}

TEST(DecimalConstantsTest, MaskingFindsItsValue) {
  const layers::Masking layer({.mask_value = 0.1});
  const Tensor y = layer(floats({0.1F, 0.1F, 0.1F, 0.7F}, {1, 2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 0, 0.1F, 0.7F}));
}

TEST(DecimalConstantsTest, MetricsCompareWithFloatThresholds) {
  for (const double threshold : {0.1, 0.7}) {
    const Tensor p = Tensor::full<float>({1, 1}, static_cast<float>(threshold));
    const Tensor one = Tensor::full<float>({1, 1}, 1);
    // Predictions are positive above the threshold, except for IoU, where they are from it on.
    EXPECT_EQ(metrics::binary_accuracy(one, p, threshold).item<float>(), 0);
    const metrics::Recall recall({.thresholds = threshold});
    recall->update_state(one, p);
    EXPECT_EQ(recall->result(), 0);
    const metrics::FBetaScore score({.average = "micro", .threshold = threshold});
    score->update_state(one, p);
    EXPECT_EQ(score->result(), 0);
    const metrics::BinaryIoU iou({.target_class_ids = {1}, .threshold = threshold});
    iou->update_state(one, p);
    EXPECT_NEAR(iou->result(), 1, 1e-6);
  }
}

}  // namespace keel::decimal_constants_test
