#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/pooling/pooling.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::adaptive_pooling_test {

using layers::AdaptiveAveragePooling1D;
using layers::AdaptiveAveragePooling2D;
using layers::AdaptiveAveragePooling3D;
using layers::AdaptiveMaxPooling1D;
using layers::AdaptiveMaxPooling2D;
using layers::AdaptiveMaxPooling3D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

TEST(AdaptivePoolingTest, WindowsDivideTheInputEvenly) {
  const Tensor x = testing_support::sequence({1, 2, 3, 4, 5});
  EXPECT_EQ(AdaptiveAveragePooling1D({.output_size = 2})(x).to_vector<float>(), (Values{2, 4}));
  EXPECT_EQ(AdaptiveMaxPooling1D({.output_size = 3})(x).to_vector<float>(), (Values{2, 4, 5}));
  EXPECT_EQ(AdaptiveAveragePooling1D({.output_size = 5})(x).to_vector<float>(),
            (Values{1, 2, 3, 4, 5}));
  EXPECT_EQ(AdaptiveMaxPooling1D({.output_size = 10})(x).to_vector<float>(),
            (Values{1, 1, 2, 2, 3, 3, 4, 4, 5, 5}));
}

TEST(AdaptivePoolingTest, OutputsHaveTheGivenSize) {
  const AdaptiveMaxPooling2D layer({.output_size = {3, 2}, .data_format = "channels_first"});
  EXPECT_EQ(layer(layers::input({.shape = {4, kUnknown, 7}})).shape(), Shape({kUnknown, 4, 3, 2}));
  EXPECT_EQ(layer(Tensor::zeros({2, 4, 5, 7})).shape(), Shape({2, 4, 3, 2}));
  EXPECT_EQ(AdaptiveAveragePooling2D({.output_size = 2})(Tensor::zeros({2, 5, 7, 4})).shape(),
            Shape({2, 2, 2, 4}));
  const auto read = layers::deserialize(
      parse_json(R"({"class_name": "AdaptiveMaxPooling3D", "config": {"output_size": 2}})"));
  EXPECT_EQ(to_json(read->get_config()["output_size"]), "[2, 2, 2]");
}

TEST(AdaptivePoolingTest, GradientsMatchFiniteDifferences) {
  const Tensor x = testing_support::distinct_doubles({1, 3, 4, 5, 1});
  testing_support::expect_gradients_are_slopes(
      AdaptiveMaxPooling3D({.output_size = 2, .dtype = DType::kFloat64}), x);
  testing_support::expect_gradients_are_slopes(
      AdaptiveAveragePooling3D({.output_size = {2, 3, 2}, .dtype = DType::kFloat64}), x);
}

TEST(AdaptivePoolingTest, RejectsInvalidOptionsAndShapes) {
  EXPECT_THROW(AdaptiveMaxPooling2D({}), ValueError);
  EXPECT_THROW(AdaptiveMaxPooling2D({.output_size = {1, -1}}), ValueError);
  EXPECT_THROW(AdaptiveMaxPooling2D({.output_size = 1, .data_format = "last"}), ValueError);
  EXPECT_THROW(AdaptiveMaxPooling2D({.output_size = 1})(Tensor::zeros({1, 2, 3})), ValueError);
  EXPECT_THROW(AdaptiveMaxPooling2D({.output_size = 1})(Tensor::zeros({1, 0, 3, 1})), ValueError);
}

TEST(AdaptivePoolingTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "AdaptiveAveragePooling1D",
                         .config = R"({"output_size": [2]})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 2, 3})});
  expect_layer_contract({.class_name = "AdaptiveAveragePooling2D",
                         .config = R"({"output_size": [2, 3]})",
                         .inputs = float_spec({2, 5, 4, 3}),
                         .output = float_spec({2, 2, 3, 3})});
  expect_layer_contract({.class_name = "AdaptiveAveragePooling3D",
                         .config = R"({"output_size": [2, 3, 1]})",
                         .inputs = float_spec({2, 5, 4, 2, 3}),
                         .output = float_spec({2, 2, 3, 1, 3})});
  expect_layer_contract({.class_name = "AdaptiveMaxPooling1D",
                         .config = R"({"output_size": 3})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 3, 3})});
  expect_layer_contract({.class_name = "AdaptiveMaxPooling2D",
                         .config = R"({"output_size": 2, "data_format": "channels_first"})",
                         .inputs = float_spec({2, 3, 5, 4}),
                         .output = float_spec({2, 3, 2, 2})});
  expect_layer_contract({.class_name = "AdaptiveMaxPooling3D",
                         .config = R"({"output_size": 2})",
                         .inputs = float_spec({2, 5, 4, 2, 3}),
                         .output = float_spec({2, 2, 2, 2, 3})});
}

}  // namespace keel::adaptive_pooling_test
