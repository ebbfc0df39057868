#include <keel/layers/image/tone.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/ops.h>

#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::tone_test {

using layers::AutoContrast;
using layers::Equalization;
using layers::Solarization;
using testing_support::expect_augmentation;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::float_spec;
using testing_support::floats;

TEST(AutoContrastTest, StretchesEachChannelOfEachImage) {
  const AutoContrast layer({.value_range = {0, 1}});
  const Tensor x = floats({0.25F, 0.5F, 0.5F, 0.5F, 0, 0.1F, 0.5F, 0.3F}, {2, 2, 1, 2});
  // The second channel of the first image has a single value.
  expect_near(layer(x), floats({0, 0.5F, 1, 0.5F, 0, 0, 1, 1}, {2, 2, 1, 2}),
              {.absolute = 1e-5, .relative = 1e-5});
}

TEST(EqualizationTest, TheRangeScalesTheResult) {
  const Tensor x = testing_support::random_images(1, 6);
  const Tensor bytes = Equalization({})(x);
  const Tensor unit = Equalization({.value_range = {0, 1}})(x / 255.0);
  expect_near(unit * 255.0, bytes, {.absolute = 1e-3, .relative = 1e-4});
  const auto [low, high] = std::ranges::minmax(bytes.to_vector<float>());
  EXPECT_EQ(low, 0);
  EXPECT_EQ(high, 255);
}

TEST(EqualizationTest, AChannelOfOneValueIsUnchanged) {
  const Tensor x = Tensor::full<float>({1, 2, 2, 1}, 77);
  EXPECT_EQ(Equalization({})(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_THROW(Equalization({.bins = 1}), ValueError);
}

TEST(SolarizationTest, InvertsPixelsAboveTheThreshold) {
  const Tensor x = floats({59, 62, 63}, {1, 1, 1, 3});
  EXPECT_EQ(Solarization({})(x).to_vector<float>(), x.to_vector<float>());
  EXPECT_EQ(Solarization({})(x, {.training = true}).to_vector<float>(),
            (std::vector<float>{196, 193, 192}));
}

TEST(SolarizationTest, ThresholdsAreDistributedEvenly) {
  constexpr int64_t kImages = 2000;
  const Solarization layer({.threshold_factor = 1, .value_range = {0, 1}, .seed = 1});
  const Tensor x = Tensor::full<float>({kImages, 1, 1, 1}, 0.25F);
  const std::vector<float> y = layer(x, {.training = true}).to_vector<float>();
  const auto inverted = std::ranges::count_if(y, [](float v) { return v > 0.5F; });
  EXPECT_NEAR(inverted, 0.25 * kImages, 5 * std::sqrt(0.1875 * kImages));
}

TEST(SolarizationTest, IsAReproducibleAugmentation) {
  expect_augmentation("Solarization", R"({"addition_factor": 0.5, "threshold_factor": 0.5})");
  EXPECT_THROW(Solarization({.addition_factor = 1.5}), ValueError);
  EXPECT_THROW(Solarization({.threshold_factor = {-0.5, 0.5}}), ValueError);
}

TEST(ToneTest, MeetTheContractOfLayers) {
  const Specs images = float_spec({2, 2, 2, 3});
  expect_layer_contract({.class_name = "AutoContrast",
                         .config = R"({"value_range": [0, 1]})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "Equalization",
                         .config = R"({"bins": 16})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "Solarization",
                         .config = R"({"addition_factor": 0.25, "threshold_factor": [0.5, 0.75]})",
                         .inputs = images,
                         .output = images});
}

TEST(EqualizationTest, NanCountsAsZero) {
  const Tensor y = Equalization({})(floats({NAN, 10, 200, 30}, {1, 2, 2, 1}));
  EXPECT_EQ(y.to_vector<float>()[0], 0);
}

}  // namespace keel::tone_test
