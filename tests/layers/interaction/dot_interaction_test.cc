#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/interaction/interaction.h>

#include "tests/support/layer_contract.h"

namespace keel::dot_interaction_test {

using layers::DotInteraction;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::float_spec_pair;
using Values = std::vector<float>;

// Products: 1.1 = 5, 2.1 = 11, 2.2 = 25, 3.1 = 17, 3.2 = 39, 3.3 = 61.
Tensors three() {
  return Tensors::list({Tensor::from<float>({1, 2}, {1, 2}), Tensor::from<float>({3, 4}, {1, 2}),
                        Tensor::from<float>({5, 6}, {1, 2})});
}

TEST(DotInteractionTest, ReturnsPairsBelowTheDiagonalByRow) {
  EXPECT_EQ(DotInteraction({})(three()).tensor().to_vector<float>(), (Values{11, 17, 39}));
}

TEST(DotInteractionTest, MayPairFeaturesWithThemselves) {
  const Tensor y = DotInteraction({.self_interaction = true})(three()).tensor();
  EXPECT_EQ(y.to_vector<float>(), (Values{5, 11, 25, 17, 39, 61}));
}

TEST(DotInteractionTest, SkippingTheGatherKeepsZerosAbove) {
  const Tensor y = DotInteraction({.skip_gather = true})(three()).tensor();
  EXPECT_EQ(y.shape(), Shape({1, 9}));
  EXPECT_EQ(y.to_vector<float>(), (Values{0, 0, 0, 11, 0, 0, 17, 39, 0}));
  const DotInteraction with_self({.self_interaction = true, .skip_gather = true});
  EXPECT_EQ(with_self(three()).tensor().to_vector<float>(),
            (Values{5, 0, 0, 11, 25, 0, 17, 39, 61}));
}

TEST(DotInteractionTest, AStackedTensorIsEquivalent) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {1, 3, 2});
  EXPECT_EQ(DotInteraction({})(x).to_vector<float>(), (Values{11, 17, 39}));
}

TEST(DotInteractionTest, BothFormsHaveTheSameGradient) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {1, 3, 2});
  const auto gradient = [&](bool skip_gather) {
    GradientTape tape;
    tape.watch(x);
    const Tensor y = DotInteraction({.skip_gather = skip_gather})(x);
    return tape.input_gradient(ops::sum(y), {x})[0].dense().to_vector<float>();
  };
  // The gradient of a feature is the sum of the other features.
  EXPECT_EQ(gradient(false), (Values{8, 10, 6, 8, 4, 6}));
  EXPECT_EQ(gradient(true), gradient(false));
}

TEST(DotInteractionTest, ShapesFollowFromSymbolicInputs) {
  const Tensors inputs =
      Tensors::list({layers::input({.shape = {4}}), layers::input({.shape = {4}}),
                     layers::input({.shape = {4}})});
  EXPECT_EQ(DotInteraction({})(inputs).tensor().shape(), Shape({kUnknown, 3}));
  EXPECT_EQ(DotInteraction({.skip_gather = true})(inputs).tensor().shape(), Shape({kUnknown, 9}));
}

TEST(DotInteractionTest, RejectsFeaturesOfDifferentShapes) {
  EXPECT_THROW(DotInteraction({})(Tensors::list({Tensor::zeros({1, 2}), Tensor::zeros({1, 3})})),
               ValueError);
  EXPECT_THROW(DotInteraction({})(Tensors::list({Tensor::zeros({2}), Tensor::zeros({2})})),
               ValueError);
}

TEST(DotInteractionTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "DotInteraction",
                         .config = R"({"self_interaction": true})",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::dot_interaction_test
