#include "layers/regularization/activity_regularization.h"

#include "gtest/gtest.h"

namespace keel::activity_regularization_test {

using layers::ActivityRegularization;

TEST(ActivityRegularizationTest, AddsAPenaltyOnItsInput) {
  const ActivityRegularization layer({.l1 = 0.5, .l2 = 0.25});
  const Tensor x = Tensor::from<float>({1, -2}, {1, 2});
  EXPECT_EQ(layer(x).id(), x.id());
  ASSERT_EQ(layer->losses().size(), 1u);
  EXPECT_FLOAT_EQ(layer->losses()[0].item<float>(), 0.5F * 3 + 0.25F * 5);
}

TEST(ActivityRegularizationTest, KeepsMasks) {
  const Tensor x = Tensor::zeros({1, 2}).with_mask(Tensor::full<bool>({1}, true));
  EXPECT_TRUE(ActivityRegularization({})(x).mask());
}

}  // namespace keel::activity_regularization_test
