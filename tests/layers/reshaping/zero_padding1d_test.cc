#include <keel/layers/reshaping/zero_padding1d.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>

#include "tests/layers/gradient_check.h"

namespace keel::zero_padding1d_test {

using layers::ZeroPadding1D;

TEST(ZeroPadding1DTest, AddsZerosAtBothEnds) {
  const Tensor x = Tensor::from<float>({1, 2}, {1, 2, 1});
  EXPECT_EQ(ZeroPadding1D({})(x).to_vector<float>(), (std::vector<float>{0, 1, 2, 0}));
  EXPECT_EQ(ZeroPadding1D({.padding = {0, 2}})(x).to_vector<float>(),
            (std::vector<float>{1, 2, 0, 0}));
  EXPECT_EQ(ZeroPadding1D({})(layers::input({.shape = {kUnknown, 3}})).shape(),
            Shape({kUnknown, kUnknown, 3}));
}

TEST(ZeroPadding1DTest, ChannelsFirstHaveTheirStepsLast) {
  const Tensor y = ZeroPadding1D({.data_format = "channels_first"})(Tensor::zeros({2, 3, 4}));
  EXPECT_EQ(y.shape(), Shape({2, 3, 6}));
}

TEST(ZeroPadding1DTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(ZeroPadding1D({.padding = {2, 1}}),
                                               testing_support::distinct_doubles({2, 2, 2}));
}

TEST(ZeroPadding1DTest, RejectsBadNumbersAndShapes) {
  EXPECT_THROW(ZeroPadding1D({.padding = {-1, 0}}), ValueError);
  EXPECT_THROW(ZeroPadding1D({.data_format = "first"}), ValueError);
  EXPECT_THROW(ZeroPadding1D({})(Tensor::zeros({1, 5})), ValueError);
}

}  // namespace keel::zero_padding1d_test
