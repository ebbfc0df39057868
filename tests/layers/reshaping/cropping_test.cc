#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/padding.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::cropping_test {

using layers::Cropping1D;
using layers::Cropping2D;
using layers::Cropping3D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(Cropping1DTest, CropsBothEnds) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5}, {1, 5, 1});
  EXPECT_EQ(Cropping1D({})(x).to_vector<float>(), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(Cropping1D({.cropping = {0, 3}})(x).to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(Cropping1D({.cropping = 2})(layers::input({.shape = {kUnknown, 3}})).shape(),
            Shape({kUnknown, kUnknown, 3}));
}

TEST(Cropping1DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(Cropping1D({.cropping = {2, 1}}),
                                               testing_support::distinct_doubles({2, 5, 2}));
}

TEST(Cropping1DTest, ReadsOneNumberForBothEnds) {
  const auto layer = layers::deserialize(
      parse_json(R"({"class_name": "Cropping1D", "config": {"name": "c", "cropping": 2}})"));
  EXPECT_EQ(to_json(layer->get_config()["cropping"]), "[2, 2]");
}

TEST(Cropping1DTest, RejectsInvalidNumbersAndShapes) {
  EXPECT_THROW(Cropping1D({.cropping = {-1, 0}}), ValueError);
  EXPECT_THROW(Cropping1D({.cropping = {2, 3}})(Tensor::zeros({1, 5, 1})), ValueError);
  EXPECT_THROW(Cropping1D({})(Tensor::zeros({1, 5})), ValueError);
}

TEST(Cropping2DTest, CropsAllEnds) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1});
  using Values = std::vector<float>;
  EXPECT_EQ(Cropping2D({})(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(Cropping2D({.cropping = 1})(x).to_vector<float>(), (Values{5}));
  EXPECT_EQ(Cropping2D({.cropping = {1, 0}})(x).to_vector<float>(), (Values{4, 5, 6}));
  EXPECT_EQ(Cropping2D({.cropping = {{2, 0}, {0, 1}}})(x).to_vector<float>(), (Values{7, 8}));
  EXPECT_THROW(Cropping2D({.cropping = {0, 2}})(x), ValueError);
}

TEST(Cropping2DTest, ReadsAllFormsOfConfigs) {
  const auto written = [](const std::string& cropping) {
    const auto layer = layers::deserialize(
        parse_json(R"({"class_name": "Cropping2D", "config": {"cropping": )" + cropping + "}}"));
    return to_json(layer->get_config()["cropping"]);
  };
  EXPECT_EQ(written("2"), "[[2, 2], [2, 2]]");
  EXPECT_EQ(written("[1, 2]"), "[[1, 1], [2, 2]]");
  EXPECT_EQ(written("[[1, 0], [0, 3]]"), "[[1, 0], [0, 3]]");
  EXPECT_THROW(written("[1, 2, 3]"), ValueError);
  EXPECT_THROW(written("[[1], [2]]"), ValueError);
}

TEST(Cropping3DTest, AcceptsUnknownDimensions) {
  const Cropping3D layer({.cropping = {{1, 0}, {0, 1}, {1, 1}}, .data_format = "channels_first"});
  EXPECT_EQ(layer(layers::input({.shape = {2, 4, kUnknown, 5}})).shape(),
            Shape({kUnknown, 2, 3, kUnknown, 3}));
  testing_support::expect_gradients_are_slopes(layer,
                                               testing_support::distinct_doubles({1, 2, 2, 2, 3}));
}

TEST(Cropping1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Cropping1D",
                         .config = R"({"cropping": [1, 2]})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 2, 3})});
  expect_layer_contract({.class_name = "Cropping2D",
                         .config = R"({"cropping": [[1, 2], [0, 1]]})",
                         .inputs = float_spec({2, 5, 4, 3}),
                         .output = float_spec({2, 2, 3, 3})});
  expect_layer_contract({.class_name = "Cropping3D",
                         .config = "{}",
                         .inputs = float_spec({2, 3, 4, 5, 2}),
                         .output = float_spec({2, 1, 2, 3, 2})});
}

}  // namespace keel::cropping_test
