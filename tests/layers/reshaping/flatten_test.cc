#include <keel/layers/reshaping/flatten.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>

namespace keel::flatten_test {

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

}  // namespace keel::flatten_test
