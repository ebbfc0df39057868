#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/reshaping/reshaping.h>

#include "tests/support/layer_contract.h"

namespace keel::flatten_test {

using layers::Flatten;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(FlattenTest, KeepsTheBatchAndJoinsTheRest) {
  EXPECT_EQ(Flatten({})(Tensor::zeros({2, 3, 4})).shape(), Shape({2, 12}));
  EXPECT_EQ(Flatten({})(Tensor::zeros({0, 3, 4})).shape(), Shape({0, 12}));
  EXPECT_EQ(Flatten({})(Tensor::zeros({2})).shape(), Shape({2, 1}));
}

TEST(FlattenTest, UnknownDimensionsStayUnknown) {
  const Tensor x = layers::input({.shape = {kUnknown, 4}});
  EXPECT_EQ(Flatten({})(x).shape(), Shape({kUnknown, kUnknown}));
}

TEST(FlattenTest, ChannelsFirstComeInTheOrderOfChannelsLast) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {1, 2, 3});
  EXPECT_EQ(Flatten({.data_format = "channels_first"})(x).to_vector<float>(),
            (std::vector<float>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(Flatten({.data_format = "channels_first"})(Tensor::zeros({2, 3})).shape(),
            Shape({2, 3}));
}

TEST(FlattenTest, RejectsAScalarAndUnknownFormats) {
  EXPECT_THROW(Flatten({})(Tensor::scalar<float>(1)), ValueError);
  EXPECT_THROW(Flatten({.data_format = "channels"}), ValueError);
}

TEST(FlattenTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Flatten",
                         .config = "{}",
                         .inputs = float_spec({2, 3, 4}),
                         .output = float_spec({2, 12})});
}

}  // namespace keel::flatten_test
