// Tests layers/pooling/pooling.cc.
#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/pooling/pooling.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::average_pooling_test {

using layers::AveragePooling1D;
using layers::AveragePooling2D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

Tensor steps() { return Tensor::from<float>({1, 3, 5, 7, 9}, {1, 5, 1}); }

TEST(AveragePooling1DTest, AveragesOverWindows) {
  EXPECT_EQ(AveragePooling1D({})(steps()).to_vector<float>(), (Values{2, 6}));
  EXPECT_EQ(AveragePooling1D({.pool_size = 3, .strides = 1})(steps()).to_vector<float>(),
            (Values{3, 5, 7}));
  EXPECT_EQ(AveragePooling1D({.pool_size = 1, .strides = 3})(steps()).to_vector<float>(),
            (Values{1, 7}));
}

TEST(AveragePooling1DTest, PaddingDoesNotCount) {
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

TEST(AveragePooling1DTest, GradientsMatchFiniteDifferences) {
  for (const char* padding : {"valid", "same"}) {
    testing_support::expect_gradients_are_slopes(
        AveragePooling1D(
            {.pool_size = 3, .strides = 2, .padding = padding, .dtype = DType::kFloat64}),
        testing_support::distinct_doubles({2, 6, 2}));
  }
}

TEST(AveragePooling1DTest, StridesAreWrittenEvenIfDefaulted) {
  const auto layer = layers::deserialize(parse_json(
      R"({"class_name": "AveragePooling1D", "config": {"pool_size": 3, "strides": null}})"));
  EXPECT_EQ(to_json(layer->get_config()["pool_size"]), "[3]");
  EXPECT_EQ(to_json(layer->get_config()["strides"]), "[3]");
}

TEST(AveragePooling1DTest, RejectsInvalidOptionsAndShapes) {
  EXPECT_THROW(AveragePooling1D({.pool_size = 0}), ValueError);
  EXPECT_THROW(AveragePooling1D({.strides = 0}), ValueError);
  EXPECT_THROW(AveragePooling1D({.padding = "causal"}), ValueError);
  EXPECT_THROW(AveragePooling1D({.data_format = "last"}), ValueError);
  EXPECT_THROW(AveragePooling1D({})(Tensor::zeros({1, 5})), ValueError);
  EXPECT_THROW(AveragePooling1D({.pool_size = 6})(steps()), ValueError);
}

TEST(AveragePooling2DTest, PaddingDoesNotCount) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1});
  EXPECT_EQ(AveragePooling2D({.padding = "same"})(x).to_vector<float>(), (Values{3, 4.5, 7.5, 9}));
  const auto layer = layers::deserialize(
      parse_json(R"({"class_name": "AveragePooling2D", "config": {"pool_size": [3, 2]}})"));
  EXPECT_EQ(to_json(layer->get_config()["strides"]), "[3, 2]");
}

TEST(AveragePooling3DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      layers::AveragePooling3D({.pool_size = {2, 1, 2},
                                .strides = 1,
                                .padding = "same",
                                .data_format = "channels_first",
                                .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({1, 2, 3, 2, 3}));
}

TEST(AveragePooling1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "AveragePooling1D",
                         .config = R"({"pool_size": [2], "padding": "same"})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 3, 3})});
  expect_layer_contract({.class_name = "AveragePooling2D",
                         .config = R"({"pool_size": [2, 3], "padding": "same"})",
                         .inputs = float_spec({2, 5, 4, 3}),
                         .output = float_spec({2, 3, 2, 3})});
  expect_layer_contract({.class_name = "AveragePooling3D",
                         .config = R"({"pool_size": 2})",
                         .inputs = float_spec({2, 4, 5, 2, 3}),
                         .output = float_spec({2, 2, 2, 1, 3})});
}

}  // namespace keel::average_pooling_test
