#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/normalization/layer_normalization.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::group_normalization_test {

using layers::GroupNormalization;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

TEST(GroupNormalizationTest, NormalizesGroupsOfASample) {
  const GroupNormalization layer({.groups = 2, .epsilon = 0});
  const Tensor x = Tensor::from<float>({1, 3, 10, 30}, {1, 4});
  EXPECT_EQ(layer(x).to_vector<float>(), (Values{-1, 1, -1, 1}));
  EXPECT_EQ(layer->weights()[0].shape(), Shape({4}));
}

TEST(GroupNormalizationTest, AllStepsMakeTheStatistics) {
  const GroupNormalization layer({.groups = -1, .epsilon = 0});
  const Tensor x = Tensor::from<float>({1, 10, 3, 30}, {1, 2, 2});
  EXPECT_EQ(layer(x).to_vector<float>(), (Values{-1, -1, 1, 1}));
}

TEST(GroupNormalizationTest, TheAxisMayBeAnyButTheBatch) {
  const GroupNormalization layer({.groups = 1, .axis = 1, .epsilon = 0});
  const Tensor x = Tensor::from<float>({1, 1, 3, 3}, {1, 2, 2});
  EXPECT_EQ(layer(x).to_vector<float>(), (Values{-1, -1, 1, 1}));
  EXPECT_THROW(GroupNormalization({.groups = 1, .axis = 0})(x), ValueError);
}

TEST(GroupNormalizationTest, GradientsMatchFiniteDifferences) {
  const GroupNormalizationOptions cases[] = {
      {.groups = 2}, {.groups = -1}, {.groups = 2, .center = false}, {.groups = 2, .scale = false}};
  for (GroupNormalizationOptions options : cases) {
    options.dtype = DType::kFloat64;
    for (const Shape& shape : {Shape{2, 3, 4}, Shape{3, 4}, Shape{2, 2, 2, 4}}) {
      testing_support::expect_gradients_are_slopes(GroupNormalization(options),
                                                   testing_support::distinct_doubles(shape));
    }
    options.axis = 1;
    testing_support::expect_gradients_are_slopes(GroupNormalization(options),
                                                 testing_support::distinct_doubles({2, 4, 3}));
  }
}

TEST(GroupNormalizationTest, EqualValuesGiveNoNaN) {
  const Tensor y = GroupNormalization({.groups = 1})(Tensor::full<float>({1, 3}, 1.1F));
  for (float v : y.data<float>()) EXPECT_NEAR(v, 0, 1e-5);
}

TEST(GroupNormalizationTest, AcceptsRegularizersAndConstraintsAndKeepsMasks) {
  const GroupNormalization layer({.groups = 1,
                                  .beta_regularizer = "l1",
                                  .gamma_regularizer = "l2",
                                  .beta_constraint = "unit_norm",
                                  .gamma_constraint = "non_neg"});
  EXPECT_TRUE(layer(Tensor::zeros({1, 2}).with_mask(Tensor::full<bool>({1}, true))).mask());
  EXPECT_EQ(layer->losses().size(), 2u);
  for (const Variable& v : layer->trainable_variables()) EXPECT_TRUE(v.constraint()) << v.name();
}

TEST(GroupNormalizationTest, RejectsInvalidOptionsAndInputs) {
  EXPECT_THROW(GroupNormalization({.epsilon = -1}), ValueError);
  EXPECT_THROW(GroupNormalization({.groups = 0}), ValueError);
  EXPECT_THROW(GroupNormalization({.groups = 3})(Tensor::zeros({1, 4})), ValueError);
  EXPECT_THROW(GroupNormalization({.groups = 8})(Tensor::zeros({1, 4})), ValueError);
  EXPECT_THROW(GroupNormalization({.groups = 1})(layers::input({.shape = {kUnknown}})), ValueError);
}

TEST(GroupNormalizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "GroupNormalization",
                         .config = R"({"groups": 2})",
                         .inputs = float_spec({2, 3, 4}),
                         .output = float_spec({2, 3, 4}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::group_normalization_test
