#include <gtest/gtest.h>

#include <keel/layers/activation/activation.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::softmax_test {

using layers::Softmax;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

double sum(const Tensor& t) { return ops::sum(t).item<double>(); }

TEST(SoftmaxTest, SumsToOneAlongItsAxes) {
  const Tensor x = testing_support::distinct_doubles({2, 3, 2});
  EXPECT_NEAR(sum(Softmax({})(x)), 6, 1e-12);
  EXPECT_NEAR(sum(Softmax({.axis = 1})(x)), 4, 1e-12);
  EXPECT_NEAR(sum(Softmax({.axis = {1, 2}})(x)), 2, 1e-12);
}

TEST(SoftmaxTest, GradientsMatchFiniteDifferences) {
  for (const Axes& axis : {Axes(-1), Axes({1, 2})}) {
    testing_support::expect_gradients_are_slopes(Softmax({.axis = axis, .dtype = DType::kFloat64}),
                                                 testing_support::distinct_doubles({2, 2, 2}));
  }
}

TEST(SoftmaxTest, MaskedElementsAreZeroAndIgnored) {
  const Tensor x = Tensor::zeros({2, 4});
  const Tensor mask =
      Tensor::from<bool>({true, true, false, false, false, false, false, false}, {2, 4});
  const Tensor y = Softmax({})(x.with_mask(mask));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0.5, 0.5, 0, 0, 0, 0, 0, 0}));
  EXPECT_TRUE(y.mask());
}

TEST(SoftmaxTest, AMaskOfStepsHoldsForAllTheirFeatures) {
  const Tensor mask = Tensor::from<bool>({true, false, true}, {1, 3});
  const Tensor y = Softmax({.axis = 1})(Tensor::zeros({1, 3, 2}).with_mask(mask));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0.5, 0.5, 0, 0, 0.5, 0.5}));
}

TEST(SoftmaxTest, RejectsAxesOutOfRange) {
  EXPECT_THROW(Softmax({.axis = 2})(Tensor::zeros({1, 3})), ValueError);
}

TEST(SoftmaxTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Softmax",
                         .config = R"({"axis": [1, 2]})",
                         .inputs = float_spec({2, 3, 4}),
                         .output = float_spec({2, 3, 4})});
}

}  // namespace keel::softmax_test
