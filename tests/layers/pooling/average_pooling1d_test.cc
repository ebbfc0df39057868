#include <keel/layers/pooling/average_pooling1d.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"

namespace keel::average_pooling1d_test {

using layers::AveragePooling1D;
using Values = std::vector<float>;

Tensor steps() { return Tensor::from<float>({1, 3, 5, 7, 9}, {1, 5, 1}); }

TEST(AveragePooling1DTest, AveragesOverWindows) {
  EXPECT_EQ(AveragePooling1D({})(steps()).to_vector<float>(), (Values{2, 6}));
  EXPECT_EQ(AveragePooling1D({.pool_size = 3, .strides = 1})(steps()).to_vector<float>(),
            (Values{3, 5, 7}));
  EXPECT_EQ(AveragePooling1D({.pool_size = 1, .strides = 3})(steps()).to_vector<float>(),
            (Values{1, 7}));
}

TEST(AveragePooling1DTest, WhatLiesBeyondTheEndsDoesNotCount) {
  EXPECT_EQ(AveragePooling1D({.padding = "same"})(steps()).to_vector<float>(), (Values{2, 6, 9}));
  EXPECT_EQ(AveragePooling1D({.pool_size = 4, .strides = 2, .padding = "same"})(steps())
                .to_vector<float>(),
            (Values{3, 6, 8}));
}

TEST(AveragePooling1DTest, ChannelsFirstHaveTheirStepsLast) {
  const AveragePooling1D layer({.data_format = "channels_first"});
  EXPECT_EQ(layer(steps().reshaped({1, 1, 5})).to_vector<float>(), (Values{2, 6}));
}

TEST(AveragePooling1DTest, ShapesFollowFromSymbolicInputs) {
  const AveragePooling1D layer({.strides = 3, .padding = "same"});
  EXPECT_EQ(layer(layers::input({.shape = {7, 2}})).shape(), Shape({kUnknown, 3, 2}));
  EXPECT_EQ(layer(layers::input({.shape = {kUnknown, 2}})).shape(), Shape({kUnknown, kUnknown, 2}));
}

TEST(AveragePooling1DTest, GradientsAreSlopes) {
  for (const char* padding : {"valid", "same"}) {
    testing_support::expect_gradients_are_slopes(
        AveragePooling1D(
            {.pool_size = 3, .strides = 2, .padding = padding, .dtype = DType::kFloat64}),
        testing_support::distinct_doubles({2, 6, 2}));
  }
}

TEST(AveragePooling1DTest, StridesAreWrittenEvenIfThePoolSizeStandsForThem) {
  const auto layer = layers::deserialize(parse_json(
      R"({"class_name": "AveragePooling1D", "config": {"pool_size": 3, "strides": null}})"));
  EXPECT_EQ(to_json(layer->get_config()["pool_size"]), "[3]");
  EXPECT_EQ(to_json(layer->get_config()["strides"]), "[3]");
}

TEST(AveragePooling1DTest, RejectsBadOptionsAndShapes) {
  EXPECT_THROW(AveragePooling1D({.pool_size = 0}), ValueError);
  EXPECT_THROW(AveragePooling1D({.strides = 0}), ValueError);
  EXPECT_THROW(AveragePooling1D({.padding = "causal"}), ValueError);
  EXPECT_THROW(AveragePooling1D({.data_format = "last"}), ValueError);
  EXPECT_THROW(AveragePooling1D({})(Tensor::zeros({1, 5})), ValueError);
  EXPECT_THROW(AveragePooling1D({.pool_size = 6})(steps()), ValueError);
}

}  // namespace keel::average_pooling1d_test
