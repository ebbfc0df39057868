#include <keel/layers/reshaping/reshape.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>

namespace keel::reshape_test {

using layers::Reshape;

TEST(ReshapeTest, FindsOutTheOpenDimension) {
  const Reshape reshape({.target_shape = {-1, 2}});
  EXPECT_EQ(reshape(Tensor::zeros({3, 6})).shape(), Shape({3, 3, 2}));
  EXPECT_EQ(reshape(layers::input({.shape = {6}})).shape(), Shape({kUnknown, 3, 2}));
}

TEST(ReshapeTest, KeepsABatchOfNoRows) {
  EXPECT_EQ(Reshape({.target_shape = {-1, 2}})(Tensor::zeros({0, 6})).shape(), Shape({0, 3, 2}));
}

TEST(ReshapeTest, LeavesOpenWhatASpecDoesNotSay) {
  const Tensor x = layers::input({.shape = {kUnknown, 4}});
  EXPECT_EQ(Reshape({.target_shape = {2, -1}})(x).shape(), Shape({kUnknown, 2, kUnknown}));
}

TEST(ReshapeTest, MovesValuesOfAnyDtype) {
  const Tensor y = Reshape({.target_shape = {2, 1}})(Tensor::from<std::string>({"a", "b"}, {1, 2}));
  EXPECT_EQ(y.shape(), Shape({1, 2, 1}));
  EXPECT_EQ(y.data<std::string>()[1], "b");
}

TEST(ReshapeTest, RejectsShapesThatDoNotFit) {
  EXPECT_THROW(Reshape({.target_shape = {4}})(Tensor::zeros({3, 6})), ValueError);
  EXPECT_THROW(Reshape({.target_shape = {-1, 4}})(Tensor::zeros({3, 6})), ValueError);
  EXPECT_THROW(Reshape({.target_shape = {4}})(layers::input({.shape = {6}})), ValueError);
  EXPECT_THROW(Reshape({.target_shape = {1}})(Tensor::scalar<float>(1)), ValueError);
}

TEST(ReshapeTest, RejectsBadOptions) {
  EXPECT_THROW(Reshape({.target_shape = {-1, -1}}), ValueError);
  EXPECT_THROW(Reshape({.target_shape = {-2}}), ValueError);
}

}  // namespace keel::reshape_test
