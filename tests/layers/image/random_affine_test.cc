#include <keel/layers/image/random_affine.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/ops.h>

#include "tests/layers/gradient_check.h"
#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::random_affine_test {

using layers::RandomRotation;
using layers::RandomShear;
using layers::RandomTranslation;
using layers::RandomZoom;
using testing_support::expect_augmentation;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::float_spec;
using testing_support::floats;
using testing_support::message_of;

// Returns the image [1, 3, 3, 1] of the numbers 1 to 9.
Tensor nine() { return floats({1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 3, 3, 1}); }

std::vector<float> in_training(const LayerHandle<Layer>& layer, const Tensor& x) {
  return layer(x, {.training = true}).to_vector<float>();
}

void expect_pixels(const std::vector<float>& received, const std::vector<float>& expected) {
  testing_support::expect_near(received, expected, {.absolute = 1e-4});
}

TEST(RandomRotationTest, TurnsCounterclockwise) {
  expect_pixels(in_training(RandomRotation({.factor = {0.25, 0.25}}), nine()),
                {3, 6, 9, 2, 5, 8, 1, 4, 7});
  expect_pixels(in_training(RandomRotation({.factor = {0.5, 0.5}}), nine()),
                {9, 8, 7, 6, 5, 4, 3, 2, 1});
}

TEST(RandomRotationTest, AnglesAreDistributedEvenly) {
  // A ring of four pixels, turned to the nearest quarter.
  constexpr int64_t kImages = 1000;
  const RandomRotation layer({.factor = 0.5, .interpolation = "nearest", .seed = 1});
  const Tensor x = ops::broadcast_to(floats({0, 1, 2, 3}, {1, 2, 2, 1}), {kImages, 2, 2, 1});
  const std::vector<float> y = in_training(layer, x);
  std::vector<int> counts(4);
  for (int64_t i = 0; i < kImages; ++i) ++counts[static_cast<int>(y[4 * i])];
  for (const int count : counts) EXPECT_NEAR(count, 250, 5 * std::sqrt(187.5));
}

TEST(RandomTranslationTest, MovesDownAndToTheRight) {
  const double third = 1.0 / 3;
  const auto moved = [&](FactorRange height, FactorRange width, const char* mode) {
    return in_training(
        RandomTranslation(
            {.height_factor = height, .width_factor = width, .fill_mode = mode, .fill_value = 7}),
        nine());
  };
  expect_pixels(moved({third, third}, {0, 0}, "constant"), {7, 7, 7, 1, 2, 3, 4, 5, 6});
  expect_pixels(moved({0, 0}, {-third, -third}, "wrap"), {2, 3, 1, 5, 6, 4, 8, 9, 7});
  expect_pixels(moved({0, 0}, {2 * third, 2 * third}, "reflect"), {2, 1, 1, 5, 4, 4, 8, 7, 7});
  expect_pixels(moved({-third, -third}, {0, 0}, "nearest"), {4, 5, 6, 7, 8, 9, 7, 8, 9});
}

TEST(RandomTranslationTest, ASingleFactorStandsForBothDirections) {
  const RandomTranslation layer({.height_factor = 0, .width_factor = 0.5, .seed = 1});
  Tensor x = Tensor::zeros({1000, 1, 101, 1});
  for (int64_t i = 0; i < 1000; ++i) x.mutable_data<float>()[101 * i + 50] = 1;
  const std::vector<float> y = in_training(layer, x);
  double sum = 0, least = 0, greatest = 0;
  for (int64_t i = 0; i < 1000; ++i) {
    double position = 0, total = 0;
    for (int64_t k = 0; k < 101; ++k) {
      position += y[101 * i + k] * static_cast<double>(k - 50);
      total += y[101 * i + k];
    }
    if (total < 0.99) continue;
    sum += position;
    least = std::min(least, position);
    greatest = std::max(greatest, position);
  }
  EXPECT_NEAR(sum / 1000, 0, 5 * 101 / std::sqrt(12 * 1000));
  EXPECT_LT(least, -45);
  EXPECT_GT(greatest, 45);
}

TEST(RandomZoomTest, PositiveFactorsZoomOut) {
  expect_pixels(in_training(RandomZoom({.height_factor = {1, 1}, .fill_mode = "constant"}), nine()),
                {0, 0, 0, 0, 5, 0, 0, 0, 0});
  expect_pixels(in_training(RandomZoom({.height_factor = {-0.5, -0.5}}), nine()),
                {3, 3.5, 4, 4.5, 5, 5.5, 6, 6.5, 7});
  expect_pixels(
      in_training(RandomZoom({.height_factor = {0, 0}, .width_factor = {{-0.5, -0.5}}}), nine()),
      {1.5, 2, 2.5, 4.5, 5, 5.5, 7.5, 8, 8.5});
}

TEST(RandomShearTest, ShearsInBothDirections) {
  const RandomShear layer({.x_factor = {1, 1}, .fill_mode = "constant", .seed = 1});
  const Tensor x = ops::broadcast_to(nine(), {100, 3, 3, 1});
  const std::vector<float> y = in_training(layer, x);
  int left = 0;
  for (int64_t i = 0; i < 100; ++i) {
    const std::vector<float> image(y.begin() + 9 * i, y.begin() + 9 * i + 9);
    const bool to_left = image == std::vector<float>{1, 2, 3, 5, 6, 0, 9, 0, 0};
    EXPECT_TRUE(to_left || image == (std::vector<float>{1, 2, 3, 0, 4, 5, 0, 0, 7}));
    left += to_left ? 1 : 0;
  }
  EXPECT_NEAR(left, 50, 25);
}

TEST(RandomShearTest, ReadsThePairThatKerasWritesForANumber) {
  const auto layer = testing_support::layer_of("RandomShear", R"({"x_factor": [-0.25, 0.25]})");
  EXPECT_EQ(to_json(layer->get_config()["x_factor"]), "0.25");
  EXPECT_THROW(RandomShear({.x_factor = {-0.25, 0.5}}), ValueError);
}

TEST(RandomAffineTest, MasksMoveWithTheImages) {
  const RandomTranslation layer(
      {.height_factor = 0.5, .width_factor = 0.5, .interpolation = "nearest", .seed = 1});
  const Tensor x = ops::broadcast_to(nine(), {8, 3, 3, 1});
  const Tensors out = layer(Tensors{{"images", x}, {"segmentation_masks", x.cast(DType::kInt32)}},
                            {.training = true});
  testing_support::expect_same_bits(out["segmentation_masks"].tensor().cast(DType::kFloat32),
                                    out["images"].tensor());
}

TEST(RandomAffineTest, GradientsMatchFiniteDifferences) {
  // Each call draws the same numbers, as all ranges have one.
  testing_support::expect_gradients_are_slopes(
      RandomRotation({.factor = {0.1, 0.1}, .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({1, 3, 3, 2}), true);
}

TEST(RandomAffineTest, AreReproducibleAugmentations) {
  expect_augmentation("RandomRotation", R"({"factor": 0.3})");
  expect_augmentation("RandomTranslation", R"({"height_factor": 0.3, "width_factor": [0.1, 0.2]})");
  expect_augmentation("RandomZoom", R"({"height_factor": 0.3, "interpolation": "nearest"})");
  expect_augmentation("RandomShear", R"({"x_factor": 0.3, "y_factor": 0.3})");
}

TEST(RandomAffineTest, RejectInvalidOptions) {
  EXPECT_THROW(RandomRotation({.factor = 1.5}), ValueError);
  EXPECT_THROW(RandomTranslation({.height_factor = {0, 2}, .width_factor = 0}), ValueError);
  EXPECT_THROW(RandomTranslation({.height_factor = 0.1}), ValueError);
  EXPECT_THROW(RandomZoom({}), ValueError);
  EXPECT_THROW(RandomZoom({.height_factor = 0.1, .width_factor = -2}), ValueError);
  EXPECT_THROW(RandomShear({.y_factor = 2}), ValueError);
  EXPECT_THAT(
      message_of<ValueError>([] { RandomRotation({.factor = 0.1, .fill_mode = "mirror"}); }),
      testing::HasSubstr("fill_mode must be one of reflect, wrap, constant, nearest"));
  EXPECT_THROW(RandomRotation({.factor = 0.1, .interpolation = "bicubic"}), ValueError);
}

TEST(RandomAffineTest, MeetTheContractOfLayers) {
  const Specs images = float_spec({2, 2, 2, 3});
  expect_layer_contract({.class_name = "RandomRotation",
                         .config = R"({"factor": [-0.25, 0.5]})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomTranslation",
                         .config = R"({"height_factor": 0.25, "width_factor": [0.25, 0.5]})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomZoom",
                         .config = R"({"height_factor": 0.25, "fill_mode": "wrap"})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomShear",
                         .config = R"({"x_factor": 0.25, "seed": 3})",
                         .inputs = images,
                         .output = images});
}

}  // namespace keel::random_affine_test
