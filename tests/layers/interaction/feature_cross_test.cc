#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/interaction/interaction.h>

#include "tests/support/layer_contract.h"

namespace keel::feature_cross_test {

using layers::FeatureCross;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::float_spec_pair;
using Values = std::vector<float>;

Tensors x0_and_x() {
  return Tensors::list({Tensor::from<float>({1, 2}, {1, 2}), Tensor::from<float>({3, 4}, {1, 2})});
}

TEST(FeatureCrossTest, ComputesTheCrossOfTwoInputs) {
  const FeatureCross cross({.kernel_initializer = "ones", .bias_initializer = "ones"});
  // x0 * (7 + 1) + x
  EXPECT_EQ(cross(x0_and_x()).tensor().to_vector<float>(), (Values{11, 20}));
}

TEST(FeatureCrossTest, OneInputIsCrossedWithItself) {
  const FeatureCross cross({.kernel_initializer = "ones"});
  EXPECT_EQ(cross(Tensor::from<float>({1, 2}, {1, 2})).to_vector<float>(), (Values{4, 8}));
}

TEST(FeatureCrossTest, DiagScaleAddsToTheDiagonal) {
  const FeatureCross cross({.diag_scale = 0.5, .kernel_initializer = "zeros"});
  // x0 * 0.5 x + x
  EXPECT_EQ(cross(x0_and_x()).tensor().to_vector<float>(), (Values{4.5, 8}));
}

TEST(FeatureCrossTest, PreActivationComesBeforeTheProduct) {
  const FeatureCross cross(
      {.pre_activation = "relu", .kernel_initializer = initializers::constant(-1)});
  EXPECT_EQ(cross(x0_and_x()).tensor().to_vector<float>(), (Values{3, 4}));
}

TEST(FeatureCrossTest, AProjectionFactorsTheKernel) {
  const FeatureCross cross({.projection_dim = 3, .kernel_initializer = "ones"});
  // x0 * (3 * 7) + x
  EXPECT_EQ(cross(x0_and_x()).tensor().to_vector<float>(), (Values{24, 46}));
  EXPECT_EQ(cross->down_kernel().shape(), Shape({2, 3}));
  EXPECT_EQ(cross->kernel().shape(), Shape({3, 2}));
  EXPECT_EQ(cross->count_params(), 14);
}

TEST(FeatureCrossTest, GradientsReachAllWeights) {
  const FeatureCross cross({.projection_dim = 1});
  GradientTape tape;
  const Tensor loss = ops::sum(cross(x0_and_x()).tensor());
  for (const Gradient& g : tape.gradient(loss, cross->trainable_variables())) EXPECT_TRUE(g);
}

TEST(FeatureCrossTest, AcceptsRegularizers) {
  const FeatureCross cross({.projection_dim = 1,
                            .kernel_initializer = "ones",
                            .bias_initializer = "ones",
                            .kernel_regularizer = "l2",
                            .bias_regularizer = "l1"});
  cross(x0_and_x());
  EXPECT_EQ(cross->losses().size(), 3u);
}

TEST(FeatureCrossTest, RejectsInvalidOptions) {
  EXPECT_THROW(FeatureCross({.projection_dim = 0}), ValueError);
  EXPECT_THROW(FeatureCross({.diag_scale = -1}), ValueError);
}

TEST(FeatureCrossTest, RejectsIncompatibleInputs) {
  EXPECT_THROW(FeatureCross({})(Tensors::list({Tensor::zeros({1, 2}), Tensor::zeros({1, 3})})),
               ValueError);
  const Tensor t = Tensor::zeros({1, 2});
  EXPECT_THROW(FeatureCross({})(Tensors::list({t, t, t})), ValueError);
  EXPECT_THROW(FeatureCross({})(Tensor::zeros({2})), ValueError);
}

TEST(FeatureCrossTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "FeatureCross",
                         .config = R"({"projection_dim": 2})",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 3}),
                         .trainable_weights = 3,
                         .weights = 3});
}

}  // namespace keel::feature_cross_test
