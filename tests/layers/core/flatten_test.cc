#include "layers/core/flatten.h"

#include "gtest/gtest.h"

#include "layers/input_layer.h"

namespace keel {
namespace {

using layers::Flatten;

TEST(FlattenTest, KeepsTheBatchAndJoinsTheRest) {
  EXPECT_EQ(Flatten({})(Tensor::zeros({2, 3, 4})).shape(), Shape({2, 12}));
  EXPECT_EQ(Flatten({})(Tensor::zeros({0, 3, 4})).shape(), Shape({0, 12}));
  EXPECT_EQ(Flatten({})(Tensor::zeros({2})).shape(), Shape({2, 1}));
}

TEST(FlattenTest, LeavesOpenWhatASpecDoesNotSay) {
  const Tensor x = layers::input({.shape = {kUnknown, 4}});
  EXPECT_EQ(Flatten({})(x).shape(), Shape({kUnknown, kUnknown}));
}

TEST(FlattenTest, RejectsAScalar) {
  EXPECT_THROW(Flatten({})(Tensor::scalar<float>(1)), ValueError);
}

}  // namespace
}  // namespace keel
