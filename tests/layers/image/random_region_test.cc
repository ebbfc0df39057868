// Tests layers/image/random_region.cc and internal/rectangle.cc.
#include <keel/layers/image/random_region.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <keel/autodiff/ops.h>
#include <keel/layers/functional/functional.h>

#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::random_region_test {

using layers::RandomCrop;
using layers::RandomErasing;
using layers::RandomFlip;
using testing_support::expect_augmentation;
using testing_support::expect_layer_contract;
using testing_support::expect_same_bits;
using testing_support::float_spec;
using testing_support::floats;
using testing_support::random_images;

constexpr int64_t kImages = 1000;

// Returns images [images, 2, 2, 1] of the numbers 0 to 3.
Tensor quads(int64_t images) {
  return ops::broadcast_to(floats({0, 1, 2, 3}, {1, 2, 2, 1}), {images, 2, 2, 1});
}

TEST(RandomFlipTest, FlipsHalfOfTheImages) {
  const std::map<std::string, std::vector<float>> flipped = {
      {"horizontal", {1, 0, 3, 2}},
      {"vertical", {2, 3, 0, 1}},
      {"horizontal_and_vertical", {3, 2, 1, 0}}};
  for (const auto& [mode, expected] : flipped) {
    const RandomFlip layer({.mode = mode, .seed = 1});
    const std::vector<float> y = layer(quads(kImages), {.training = true}).to_vector<float>();
    int64_t changed = 0;
    for (int64_t i = 0; i < kImages; ++i) {
      const std::vector<float> image(y.begin() + 4 * i, y.begin() + 4 * i + 4);
      const bool is_flipped = image == expected;
      EXPECT_TRUE(is_flipped || image == (std::vector<float>{0, 1, 2, 3}));
      changed += is_flipped ? 1 : 0;
    }
    EXPECT_NEAR(changed, kImages / 2, 5 * std::sqrt(kImages / 4)) << mode;
  }
  EXPECT_THROW(RandomFlip({.mode = "diagonal"}), ValueError);
}

TEST(RandomFlipTest, MasksFlipWithTheImages) {
  const RandomFlip layer({.seed = 1});
  const Tensors out =
      layer(Tensors{{"images", quads(8)}, {"segmentation_masks", quads(8).cast(DType::kInt32)}},
            {.training = true});
  EXPECT_EQ(out["segmentation_masks"].tensor().dtype(), DType::kInt32);
  expect_same_bits(out["segmentation_masks"].tensor().cast(DType::kFloat32),
                   out["images"].tensor());
}

TEST(RandomCropTest, AllPlacesOccur) {
  const RandomCrop layer({.height = 1, .width = 2, .seed = 1});
  const Tensor x = floats({0, 1, 2, 3, 4, 5, 6, 7, 8}, {1, 3, 3, 1});
  std::set<std::vector<float>> seen;
  for (int call = 0; call < 100; ++call) {
    const std::vector<float> y = layer(x, {.training = true}).to_vector<float>();
    ASSERT_EQ(y.size(), 2);
    EXPECT_EQ(y[1], y[0] + 1);
    seen.insert(y);
  }
  EXPECT_EQ(seen.size(), 6);
}

TEST(RandomCropTest, TheBatchIsCroppedAtOnePlace) {
  const RandomCrop layer({.height = 1, .width = 1, .seed = 1});
  const Tensor y = layer(quads(20), {.training = true});
  EXPECT_EQ(y.to_vector<float>(), std::vector<float>(20, y.to_vector<float>()[0]));
}

TEST(RandomCropTest, SmallImagesAreResized) {
  const RandomCrop layer({.height = 4, .width = 2});
  EXPECT_EQ(layer(Tensor::zeros({2, 3, 5, 1}), {.training = true}).shape(), Shape({2, 4, 2, 1}));
  EXPECT_EQ(layer(layers::input({.shape = {8, 8, 1}})).shape(), Shape({kUnknown, 4, 2, 1}));
  const Tensor x = Tensor::zeros({2, 3, 5, 1});
  expect_same_bits(layer(x), x);
  EXPECT_THROW(RandomCrop({.height = 4}), ValueError);
}

TEST(RandomErasingTest, ErasesARectangleOfTheArea) {
  // Both sides are half of the image.
  const RandomErasing layer({.factor = {1, 1}, .scale = {0.25, 0.25}, .fill_value = 0, .seed = 1});
  const Tensor y = layer(Tensor::full<float>({50, 8, 8, 1}, 9), {.training = true});
  for (int64_t i = 0; i < 50; ++i) {
    const std::vector<float> image = ops::slice(y, 0, i, 1).to_vector<float>();
    const auto erased = std::ranges::count(image, 0.0F);
    EXPECT_EQ(erased, 16);
  }
}

TEST(RandomErasingTest, ErasesWithAProbabilityThatIsDrawnFirst) {
  const RandomErasing layer({.factor = 0.5, .scale = {1, 1}, .fill_value = {{1, 2, 3}}, .seed = 1});
  const Tensor y = layer(Tensor::full<float>({kImages, 1, 1, 3}, 9), {.training = true});
  const std::vector<float> values = y.to_vector<float>();
  const auto erased = std::ranges::count(values, 2.0F);
  EXPECT_EQ(erased, std::ranges::count(values, 3.0F));
  EXPECT_NEAR(erased, kImages / 4, 5 * std::sqrt(0.1875 * kImages));
}

TEST(RandomErasingTest, NoiseIsClippedToTheRange) {
  const RandomErasing layer({.factor = {1, 1}, .scale = {1, 1}, .value_range = {0, 1}, .seed = 1});
  const std::vector<float> y =
      layer(Tensor::full<float>({1, 40, 40, 1}, 0.5F), {.training = true}).to_vector<float>();
  const auto share = [&](float v) { return static_cast<double>(std::ranges::count(y, v)) / 1600; };
  EXPECT_NEAR(share(0), 0.5, 0.07);
  EXPECT_NEAR(share(1), 0.1587, 0.05);
  EXPECT_THROW(RandomErasing({.fill_value = {{1, 2}}}), ValueError);
}

TEST(RandomRegionTest, AreReproducibleAugmentations) {
  expect_augmentation("RandomFlip", R"({"mode": "horizontal"})");
  expect_augmentation("RandomErasing", R"({"factor": [0.5, 1], "scale": [0.2, 0.6]})");
  const RandomCrop a({.height = 2, .width = 3, .seed = 3}), b({.height = 2, .width = 3, .seed = 3});
  const Tensor x = random_images(4, 9);
  expect_same_bits(a(x, {.training = true}), b(x, {.training = true}));
}

TEST(RandomRegionTest, MeetTheContractOfLayers) {
  const Specs images = float_spec({2, 2, 2, 3});
  expect_layer_contract({.class_name = "RandomFlip",
                         .config = R"({"mode": "vertical", "seed": 3})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomCrop",
                         .config = R"({"height": 2, "width": 2})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomErasing",
                         .config = R"({"scale": [0.25, 0.5], "fill_value": 3.5})",
                         .inputs = images,
                         .output = images});
}

}  // namespace keel::random_region_test
