#include <keel/layers/reshaping/cropping1d.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/input_layer.h>
#include <keel/layers/registry.h>

#include "tests/layers/gradient_check.h"

namespace keel::cropping1d_test {

using layers::Cropping1D;

TEST(Cropping1DTest, LeavesOutStepsAtBothEnds) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5}, {1, 5, 1});
  EXPECT_EQ(Cropping1D({})(x).to_vector<float>(), (std::vector<float>{2, 3, 4}));
  EXPECT_EQ(Cropping1D({.cropping = {0, 3}})(x).to_vector<float>(), (std::vector<float>{1, 2}));
  EXPECT_EQ(Cropping1D({.cropping = 2})(layers::input({.shape = {kUnknown, 3}})).shape(),
            Shape({kUnknown, kUnknown, 3}));
}

TEST(Cropping1DTest, GradientsAreSlopes) {
  testing_support::expect_gradients_are_slopes(Cropping1D({.cropping = {2, 1}}),
                                               testing_support::distinct_doubles({2, 5, 2}));
}

TEST(Cropping1DTest, ReadsOneNumberForBothEnds) {
  const auto layer = layers::deserialize(
      parse_json(R"({"class_name": "Cropping1D", "config": {"name": "c", "cropping": 2}})"));
  EXPECT_EQ(to_json(layer->get_config()["cropping"]), "[2, 2]");
}

TEST(Cropping1DTest, RejectsBadNumbersAndShapes) {
  EXPECT_THROW(Cropping1D({.cropping = {-1, 0}}), ValueError);
  EXPECT_THROW(Cropping1D({.cropping = {2, 3}})(Tensor::zeros({1, 5, 1})), ValueError);
  EXPECT_THROW(Cropping1D({})(Tensor::zeros({1, 5})), ValueError);
}

}  // namespace keel::cropping1d_test
