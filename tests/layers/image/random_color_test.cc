// Tests layers/image/random_color.cc and image_layer.cc.
#include <keel/layers/image/random_color.h>

#include <algorithm>
#include <cmath>
#include <map>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/functional/functional.h>

#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::random_color_test {

using testing::HasSubstr;
using testing_support::expect_augmentation;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::expect_same_bits;
using testing_support::float_spec;
using testing_support::floats;
using testing_support::message_of;
using testing_support::random_images;

constexpr int64_t kImages = 2000;

// Returns the first pixel's first channel of each image in training.
std::vector<float> first_values(const LayerHandle<Layer>& layer, const Tensor& images) {
  const Tensor y = layer(images, {.training = true});
  const std::vector<float> all = y.to_vector<float>();
  std::vector<float> out;
  const int64_t step = y.size() / y.dim(0);
  for (int64_t i = 0; i < y.dim(0); ++i) out.push_back(all[i * step]);
  return out;
}

// Expects numbers that are distributed evenly over [low, high], by mean, variance and extremes.
void expect_uniform(const std::vector<float>& numbers, double low, double high) {
  const auto n = static_cast<double>(numbers.size());
  double sum = 0, squares = 0;
  for (const double v : numbers) {
    sum += v;
    squares += v * v;
  }
  const double mean = sum / n, variance = squares / n - mean * mean, width = high - low;
  EXPECT_NEAR(mean, (low + high) / 2, 5 * width / std::sqrt(12 * n));
  EXPECT_NEAR(variance, width * width / 12, width * width * 0.6 / std::sqrt(n));
  const auto [least, greatest] = std::ranges::minmax(numbers);
  EXPECT_GE(least, low - 1e-4);
  EXPECT_LE(greatest, high + 1e-4);
}

// Returns images of one pixel of this color.
Tensor pixels(const std::vector<float>& rgb, int64_t images = kImages) {
  return ops::broadcast_to(floats(rgb, {1, 1, 1, 3}), {images, 1, 1, 3});
}

TEST(RandomColorTest, AreReproducibleAugmentations) {
  for (const char* name : {"RandomBrightness", "RandomContrast", "RandomHue", "RandomInvert",
                           "RandomSaturation", "RandomSharpness", "RandomColorDegeneration"}) {
    expect_augmentation(name, R"({"factor": 0.8})");
  }
  expect_augmentation("RandomPosterization", R"({"factor": 6})");
  expect_augmentation("RandomGrayscale", R"({"factor": 0.5})");
  expect_augmentation("RandomColorJitter",
                      R"({"brightness_factor": 0.2, "contrast_factor": 0.3,
                          "saturation_factor": 0.4, "hue_factor": 0.5})");
}

TEST(RandomBrightnessTest, ShiftsByAFractionOfTheRange) {
  const layers::RandomBrightness layer({.factor = {-0.1, 0.3}, .seed = 1});
  expect_uniform(first_values(layer, pixels({100, 50, 20})), 100 - 25.5, 100 + 76.5);
  const layers::RandomBrightness single({.factor = 0.2, .value_range = {0, 1}});
  expect_uniform(first_values(single, pixels({0.5, 0.5, 0.5})), 0.3, 0.7);
}

TEST(RandomBrightnessTest, ClipsToTheRange) {
  const layers::RandomBrightness white({.factor = {1, 1}});
  EXPECT_EQ(first_values(white, pixels({3, 0, 0}, 1)), std::vector<float>{255});
  const layers::RandomBrightness black({.factor = {-1, -1}});
  EXPECT_EQ(first_values(black, pixels({250, 0, 0}, 1)), std::vector<float>{0});
}

TEST(RandomContrastTest, ScalesTheDistancesFromTheMeanOfEachChannel) {
  const layers::RandomContrast layer({.factor = {0.5, 0.5}, .seed = 3});
  const Tensor x = floats({100, 10, 200, 30}, {1, 2, 1, 2});
  const std::vector<float> y = layer(x, {.training = true}).to_vector<float>();
  EXPECT_NEAR(y[0] + y[2], 300, 1e-3);
  EXPECT_NEAR(y[1] + y[3], 40, 1e-4);
  const double factor = (y[2] - y[0]) / 100;
  EXPECT_NEAR((y[3] - y[1]) / 20, factor, 1e-4);
  EXPECT_TRUE(factor >= 0.5 && factor <= 1.5);
}

TEST(RandomHueTest, TurnsTheHueInBothDirections) {
  // Turning red by a third of a circle gives green or blue.
  const layers::RandomHue layer({.factor = {2.0 / 3, 2.0 / 3}, .seed = 1});
  const std::vector<float> y = layer(pixels({200, 0, 0}), {.training = true}).to_vector<float>();
  int64_t green = 0;
  for (int64_t i = 0; i < kImages; ++i) {
    const bool is_green = y[3 * i + 1] > 100;
    green += is_green ? 1 : 0;
    EXPECT_NEAR(y[3 * i], 0, 0.1);
    EXPECT_NEAR(y[3 * i + (is_green ? 1 : 2)], 200, 0.1);
  }
  EXPECT_NEAR(green, kImages / 2, 5 * std::sqrt(kImages / 4));
}

TEST(RandomInvertTest, InvertsWithAProbabilityThatIsDrawnFirst) {
  const layers::RandomInvert layer({.factor = {0.2, 0.6}, .seed = 1});
  const std::vector<float> y = first_values(layer, pixels({55, 0, 0}));
  EXPECT_NEAR(std::ranges::count(y, 200.0F), 0.4 * kImages, 5 * std::sqrt(0.24 * kImages));
  EXPECT_EQ(std::ranges::count(y, 55.0F) + std::ranges::count(y, 200.0F), kImages);
}

TEST(RandomSaturationTest, AHalfKeepsTheColorsAndZeroMakesGray) {
  const Tensor x = random_images(2, 3);
  const layers::RandomSaturation same({.factor = {0.5, 0.5}});
  expect_near(same(x, {.training = true}), x, {.absolute = 1e-3, .relative = 1e-4});
  const layers::RandomSaturation none({.factor = {0, 0}});
  const Tensor gray = ops::broadcast_to(ops::max(x, {3}, true), x.shape());
  expect_near(none(x, {.training = true}), gray, {.absolute = 1e-3, .relative = 1e-4});
}

TEST(RandomSharpnessTest, AHalfKeepsTheImageAndZeroSmoothsIt) {
  const Tensor x = random_images(2, 5);
  const layers::RandomSharpness same({.factor = {0.5, 0.5}});
  expect_near(same(x, {.training = true}), x, {.absolute = 1e-3, .relative = 1e-5});
  Tensor dot = Tensor::zeros({1, 3, 3, 1});
  dot.mutable_data<float>()[4] = 130;
  const layers::RandomSharpness smooth({.factor = {0, 0}});
  EXPECT_THAT(smooth(dot, {.training = true}).to_vector<float>(),
              testing::Pointwise(testing::FloatEq(),
                                 std::vector<float>{10, 10, 10, 10, 50, 10, 10, 10, 10}));
}

TEST(RandomPosterizationTest, KeepsTheUpperBits) {
  const layers::RandomPosterization two({.factor = {2, 2}});
  EXPECT_EQ(first_values(two, pixels({200.7F, 0, 0}, 1)), std::vector<float>{192});
  // As in Keras, the upper end of a range is left out.
  const layers::RandomPosterization layer({.factor = {1, 3}, .seed = 1});
  const std::vector<float> y = first_values(layer, pixels({255, 0, 0}));
  EXPECT_NEAR(std::ranges::count(y, 128.0F), kImages / 2, 5 * std::sqrt(kImages / 4));
  EXPECT_EQ(std::ranges::count(y, 128.0F) + std::ranges::count(y, 192.0F), kImages);
}

TEST(RandomColorDegenerationTest, MixesWithGray) {
  const layers::RandomColorDegeneration layer({.factor = {0.25, 0.75}, .seed = 1});
  const double gray = 0.2989 * 200;
  expect_uniform(first_values(layer, pixels({200, 0, 0})), 200 + 0.75 * (gray - 200),
                 200 + 0.25 * (gray - 200));
}

TEST(RandomGrayscaleTest, ConvertsAFractionOfTheImages) {
  const layers::RandomGrayscale layer({.factor = 0.3, .seed = 1});
  const std::vector<float> y = first_values(layer, pixels({100, 0, 0}));
  const auto gray = kImages - std::ranges::count(y, 100.0F);
  EXPECT_NEAR(gray, 0.3 * kImages, 5 * std::sqrt(0.21 * kImages));
  EXPECT_NEAR(std::ranges::min(y), 29.89, 1e-3);
}

TEST(RandomColorJitterTest, WithoutFactorsImagesAreUnchanged) {
  const Tensor x = random_images(2, 3);
  expect_same_bits(layers::RandomColorJitter({})(x, {.training = true}), x);
}

TEST(ImageLayerTest, OtherValuesOfADictPassThrough) {
  const layers::RandomInvert layer({.factor = {1, 1}});
  const Tensors out = layer(Tensors{{"images", floats({5, 5, 5}, {1, 1, 1, 3})},
                                    {"labels", floats({7})},
                                    {"bounding_boxes", floats({1, 2, 3, 4})},
                                    {"segmentation_masks", floats({9})},
                                    {"weight", floats({2})}},
                            {.training = true});
  EXPECT_EQ(out["images"].tensor().to_vector<float>(), (std::vector<float>{250, 250, 250}));
  for (const auto& [key, value] :
       std::map<std::string, std::vector<float>>{{"labels", {7}},
                                                 {"bounding_boxes", {1, 2, 3, 4}},
                                                 {"segmentation_masks", {9}},
                                                 {"weight", {2}}}) {
    EXPECT_EQ(out[key].tensor().to_vector<float>(), value) << key;
  }
}

TEST(ImageLayerTest, IntegersBecomeTheDtypeOfTheLayer) {
  const Tensor x = Tensor::from<uint8_t>({250, 1, 2}, {1, 1, 3});
  const layers::RandomBrightness layer({.factor = {0.5, 0.5}, .dtype = DType::kFloat64});
  EXPECT_EQ(layer(x).to_vector<double>(), (std::vector<double>{250, 1, 2}));
  EXPECT_EQ(layer(x, {.training = true}).to_vector<double>(),
            (std::vector<double>{255, 128.5, 129.5}));
}

TEST(ImageLayerTest, TheGradientReachesTheImages) {
  const layers::RandomInvert layer({.factor = {1, 1}});
  const Tensor x = Tensor::full<float>({2, 1, 1, 3}, 1);
  GradientTape tape;
  tape.watch(x);
  const Tensor y = layer(x, {.training = true});
  EXPECT_EQ(tape.input_gradient(ops::sum(y), {x})[0].dense().to_vector<float>(),
            std::vector<float>(6, -1));
}

TEST(ImageLayerTest, ReplicasDrawDifferentNumbers) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const layers::RandomBrightness layer({.factor = 0.5});
  const auto x = strategy.distribute_values_from_function(
      [](int) { return Tensor::full<float>({4, 1, 1, 3}, 100); });
  const auto y = strategy.run([&](const Tensor& t) { return layer(t, {.training = true}); }, x);
  EXPECT_NE(y[0].to_vector<float>(), y[1].to_vector<float>());
  EXPECT_EQ(layer->variables()[0].read().item<int64_t>(), 1);
}

TEST(ImageLayerTest, TheNumberOfCallsRestoresTheSequence) {
  const layers::RandomBrightness layer({.factor = 0.5});
  const Tensor x = pixels({100, 0, 0}, 4);
  layer(x, {.training = true});
  const Variable calls = layer->variables().at(0);
  const Tensor second = layer(x, {.training = true});
  calls.assign(Tensor::full<int64_t>({1}, 1));
  expect_same_bits(layer(x, {.training = true}), second);
  EXPECT_TRUE(layer->weights().empty());
}

TEST(RandomColorTest, ErrorsNameTheArgument) {
  EXPECT_THAT(
      message_of<ValueError>([] { layers::RandomBrightness({.factor = 1.5}); }),
      HasSubstr("RandomBrightness: factor must be a number or a pair of numbers in [-1, 1]"));
  EXPECT_THAT(message_of<ValueError>([] { layers::RandomContrast({}); }),
              HasSubstr("RandomContrast: factor is not set"));
  EXPECT_EQ(to_json(layers::RandomInvert({})->get_config()["factor"]), "[0, 1]");
  EXPECT_THROW(layers::RandomContrast({.factor = -0.1}), ValueError);
  EXPECT_THROW(layers::RandomContrast({.factor = {1.5, 2}}), ValueError);
  EXPECT_THROW(layers::RandomPosterization({.factor = 0}), ValueError);
  EXPECT_THROW(layers::RandomGrayscale({.factor = 1.5}), ValueError);
  EXPECT_THROW(layers::RandomHue({.factor = 0.1, .data_format = "last"}), ValueError);
}

TEST(RandomColorTest, MeetTheContractOfLayers) {
  const Specs images = float_spec({2, 2, 2, 3});
  expect_layer_contract({.class_name = "RandomBrightness",
                         .config = R"({"factor": [-0.25, 0.5], "value_range": [0, 1]})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomContrast",
                         .config = R"({"factor": 0.5, "seed": 3})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomHue",
                         .config = R"({"factor": 0.5})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomInvert",
                         .config = R"({"bounding_box_format": null})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomSaturation",
                         .config = R"({"factor": 0.5})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomSharpness",
                         .config = R"({"factor": 0.5})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomPosterization",
                         .config = R"({"factor": 4})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomColorDegeneration",
                         .config = R"({"factor": 0.5})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomGrayscale",
                         .config = R"({"factor": 0.25})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomColorJitter",
                         .config = R"({"hue_factor": [0.25, 0.5], "value_range": [0, 1]})",
                         .inputs = images,
                         .output = images});
}

TEST(RandomPosterizationTest, FactorsMustBeInRange) {
  EXPECT_THROW(layers::RandomPosterization({.factor = {0, 9}}), ValueError);
}

}  // namespace keel::random_color_test
