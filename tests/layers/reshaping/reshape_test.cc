#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/reshaping/reshaping.h>

#include "tests/support/layer_contract.h"

namespace keel::reshape_test {

using layers::Reshape;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(ReshapeTest, InfersTheUnknownDimension) {
  const Reshape reshape({.target_shape = {-1, 2}});
  EXPECT_EQ(reshape(Tensor::zeros({3, 6})).shape(), Shape({3, 3, 2}));
  EXPECT_EQ(reshape(layers::input({.shape = {6}})).shape(), Shape({kUnknown, 3, 2}));
}

TEST(ReshapeTest, KeepsABatchOfNoRows) {
  EXPECT_EQ(Reshape({.target_shape = {-1, 2}})(Tensor::zeros({0, 6})).shape(), Shape({0, 3, 2}));
}

TEST(ReshapeTest, UnknownDimensionsStayUnknown) {
  const Tensor x = layers::input({.shape = {kUnknown, 4}});
  EXPECT_EQ(Reshape({.target_shape = {2, -1}})(x).shape(), Shape({kUnknown, 2, kUnknown}));
}

TEST(ReshapeTest, MovesValuesOfAnyDtype) {
  const Tensor y = Reshape({.target_shape = {2, 1}})(Tensor::from<std::string>({"a", "b"}, {1, 2}));
  EXPECT_EQ(y.shape(), Shape({1, 2, 1}));
  EXPECT_EQ(y.data<std::string>()[1], "b");
}

TEST(ReshapeTest, RejectsIncompatibleShapes) {
  EXPECT_THROW(Reshape({.target_shape = {4}})(Tensor::zeros({3, 6})), ValueError);
  EXPECT_THROW(Reshape({.target_shape = {-1, 4}})(Tensor::zeros({3, 6})), ValueError);
  EXPECT_THROW(Reshape({.target_shape = {4}})(layers::input({.shape = {6}})), ValueError);
  EXPECT_THROW(Reshape({.target_shape = {1}})(Tensor::scalar<float>(1)), ValueError);
}

TEST(ReshapeTest, RejectsInvalidOptions) {
  EXPECT_THROW(Reshape({.target_shape = {-1, -1}}), ValueError);
  EXPECT_THROW(Reshape({.target_shape = {-2}}), ValueError);
}

TEST(ReshapeTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Reshape",
                         .config = R"({"target_shape": [2, -1]})",
                         .inputs = float_spec({2, 6}),
                         .output = float_spec({2, 2, 3})});
}

}  // namespace keel::reshape_test
