#include <keel/layers/activation/activation.h>

#include <gtest/gtest.h>

#include "tests/support/layer_contract.h"

namespace keel::activation_test {

using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(ActivationTest, AppliesItsFunction) {
  const layers::Activation relu({.activation = "relu"});
  const Tensor y = relu(Tensor::from<float>({-1, 2}, {2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{0, 2}));
}

TEST(ActivationTest, CastsIntegersFirst) {
  const layers::Activation sigmoid({.activation = "sigmoid"});
  EXPECT_EQ(sigmoid(Tensor::from<int32_t>({0}, {1})).item<float>(), 0.5F);
}

TEST(ActivationTest, RejectsUnknownNames) {
  EXPECT_THROW(layers::Activation({.activation = "rleu"}), ValueError);
}

TEST(ActivationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Activation",
                         .config = R"({"activation": "gelu"})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::activation_test
