#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/reshaping/padding.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::zero_padding_test {

using layers::ZeroPadding1D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

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

TEST(ZeroPadding1DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(ZeroPadding1D({.padding = {2, 1}}),
                                               testing_support::distinct_doubles({2, 2, 2}));
}

TEST(ZeroPadding1DTest, RejectsInvalidNumbersAndShapes) {
  EXPECT_THROW(ZeroPadding1D({.padding = {-1, 0}}), ValueError);
  EXPECT_THROW(ZeroPadding1D({.data_format = "first"}), ValueError);
  EXPECT_THROW(ZeroPadding1D({})(Tensor::zeros({1, 5})), ValueError);
}

TEST(ZeroPadding2DTest, AddsZerosAtAllEnds) {
  const Tensor x = Tensor::from<float>({1, 2}, {1, 1, 2, 1});
  using Values = std::vector<float>;
  EXPECT_EQ(layers::ZeroPadding2D({})(x).shape(), Shape({1, 3, 4, 1}));
  EXPECT_EQ(layers::ZeroPadding2D({.padding = {{1, 0}, {0, 1}}})(x).to_vector<float>(),
            (Values{0, 0, 0, 1, 2, 0}));
  EXPECT_EQ(layers::ZeroPadding2D({.padding = {0, 1}})(x).to_vector<float>(), (Values{0, 1, 2, 0}));
}

TEST(ZeroPadding3DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      layers::ZeroPadding3D({.padding = {{1, 0}, {0, 1}, {1, 1}}, .data_format = "channels_first"}),
      testing_support::distinct_doubles({1, 2, 2, 2, 3}));
}

TEST(ZeroPadding1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "ZeroPadding1D",
                         .config = R"({"padding": [0, 2]})",
                         .inputs = float_spec({2, 3, 4}),
                         .output = float_spec({2, 5, 4})});
  expect_layer_contract({.class_name = "ZeroPadding2D",
                         .config = R"({"padding": [[0, 2], [1, 1]]})",
                         .inputs = float_spec({2, 3, 4, 2}),
                         .output = float_spec({2, 5, 6, 2})});
  expect_layer_contract({.class_name = "ZeroPadding3D",
                         .config = R"({"padding": [1, 0, 2]})",
                         .inputs = float_spec({2, 3, 4, 5, 2}),
                         .output = float_spec({2, 5, 4, 9, 2})});
}

}  // namespace keel::zero_padding_test
