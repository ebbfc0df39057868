#include <keel/layers/core/identity.h>

#include <gtest/gtest.h>

namespace keel::identity_test {

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

}  // namespace keel::identity_test
