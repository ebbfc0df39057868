#include <gtest/gtest.h>

#include <keel/layers/core/core.h>

#include "tests/support/layer_contract.h"

namespace keel::identity_test {

using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(IdentityTest, PassesStructuresOn) {
  const Tensor a = Tensor::scalar<float>(1);
  const RaggedTensor b = RaggedTensor::from_rows<int64_t>({{1}, {}});
  const Tensors y = layers::Identity({})(Tensors{{"a", a}, {"b", b}});
  EXPECT_EQ(y["a"].tensor().id(), a.id());
  EXPECT_EQ(y["b"].leaf().ragged().values.id(), b.values.id());
}

TEST(IdentityTest, KeepsMasks) {
  const Tensor x = Tensor::zeros({2}).with_mask(Tensor::full<bool>({2}, true));
  EXPECT_TRUE(layers::Identity({})(x).mask());
}

TEST(IdentityTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Identity",
                         .config = "{}",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::identity_test
