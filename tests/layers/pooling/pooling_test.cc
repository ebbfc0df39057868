// Tests layers/pooling/pooling.cc.
#include <keel/layers/pooling/pooling.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::pooling_test {

using layers::MaxPooling1D;
using layers::MaxPooling2D;
using layers::MaxPooling3D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

Tensor steps() { return Tensor::from<float>({-1, -3, -5, -7, -9}, {1, 5, 1}); }

TEST(MaxPooling1DTest, ReturnsTheMaximumOfWindows) {
  EXPECT_EQ(MaxPooling1D({})(steps()).to_vector<float>(), (Values{-1, -5}));
  EXPECT_EQ(MaxPooling1D({.pool_size = 3, .strides = 1})(steps()).to_vector<float>(),
            (Values{-1, -3, -5}));
}

TEST(MaxPooling1DTest, PaddingDoesNotCount) {
  EXPECT_EQ(
      MaxPooling1D({.pool_size = 3, .strides = 2, .padding = "same"})(steps()).to_vector<float>(),
      (Values{-1, -3, -7}));
}

TEST(MaxPooling1DTest, TheGradientOfATieGoesToTheFirst) {
  const Tensor x = Tensor::zeros({1, 4, 1});
  GradientTape tape;
  tape.watch(x);
  const Tensor y = MaxPooling1D({})(x);
  EXPECT_EQ(tape.input_gradient(ops::sum(y), {x})[0].dense().to_vector<float>(),
            (Values{1, 0, 1, 0}));
}

TEST(MaxPooling1DTest, GradientsMatchFiniteDifferences) {
  for (const char* padding : {"valid", "same"}) {
    testing_support::expect_gradients_are_slopes(
        MaxPooling1D({.pool_size = 3, .strides = 2, .padding = padding, .dtype = DType::kFloat64}),
        testing_support::distinct_doubles({2, 6, 2}));
  }
}

TEST(MaxPooling1DTest, PropagatesNaN) {
  const float nan = std::nanf("");
  const Tensor y = MaxPooling1D({})(Tensor::from<float>({nan, 1, 1, nan}, {1, 4, 1}));
  EXPECT_TRUE(std::isnan(y.data<float>()[0]));
  EXPECT_TRUE(std::isnan(y.data<float>()[1]));
}

TEST(MaxPooling2DTest, AxesHaveTheirOwnWindows) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1});
  EXPECT_EQ(MaxPooling2D({})(x).to_vector<float>(), (Values{5}));
  EXPECT_EQ(MaxPooling2D({.padding = "same"})(x).to_vector<float>(), (Values{5, 6, 8, 9}));
  EXPECT_EQ(MaxPooling2D({.pool_size = {1, 3}, .strides = {{2, 1}}})(x).to_vector<float>(),
            (Values{3, 9}));
}

TEST(MaxPooling3DTest, ShapesFollowFromSymbolicInputs) {
  const MaxPooling3D layer({.pool_size = {2, 1, 3}, .data_format = "channels_first"});
  EXPECT_EQ(layer(layers::input({.shape = {5, 4, kUnknown, 7}})).shape(),
            Shape({kUnknown, 5, 2, kUnknown, 2}));
  EXPECT_EQ(layer(Tensor::zeros({1, 5, 4, 3, 7})).shape(), Shape({1, 5, 2, 3, 2}));
}

TEST(MaxPooling3DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      MaxPooling3D({.pool_size = 2, .strides = 1, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({1, 3, 2, 3, 2}));
}

TEST(MaxPooling1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "MaxPooling1D",
                         .config = R"({"pool_size": [3], "strides": [1]})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 3, 3})});
  expect_layer_contract({.class_name = "MaxPooling2D",
                         .config = R"({"pool_size": [3, 2], "strides": [1, 2]})",
                         .inputs = float_spec({2, 5, 4, 3}),
                         .output = float_spec({2, 3, 2, 3})});
  expect_layer_contract({.class_name = "MaxPooling3D",
                         .config = R"({"padding": "same", "data_format": "channels_first"})",
                         .inputs = float_spec({2, 3, 5, 4, 3}),
                         .output = float_spec({2, 3, 3, 2, 2})});
}

}  // namespace keel::pooling_test
