#include <keel/layers/image/random_warp.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/ops.h>

#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::random_warp_test {

using layers::RandomElasticTransform;
using layers::RandomGaussianBlur;
using layers::RandomPerspective;
using testing_support::expect_augmentation;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::expect_same_bits;
using testing_support::float_spec;
using testing_support::random_images;

TEST(RandomPerspectiveTest, WithoutAScaleImagesStay) {
  const Tensor x = random_images(4, 5);
  const RandomPerspective layer({.scale = 0});
  expect_near(layer(x, {.training = true}), x, {.absolute = 0.02});
}

TEST(RandomPerspectiveTest, TheUpperLeftCornerIsFixed) {
  const Tensor x = random_images(8, 5);
  const RandomPerspective layer({.factor = {1, 1}, .scale = 0.5, .seed = 1});
  const Tensor y = layer(x, {.training = true});
  const auto corner = [](const Tensor& t) { return ops::slice(ops::slice(t, 1, 0, 1), 2, 0, 1); };
  expect_near(corner(y), corner(x), {.absolute = 0.05});
}

TEST(RandomPerspectiveTest, ChangesWithAProbabilityThatIsDrawnFirst) {
  const Tensor x = random_images(500, 3);
  const RandomPerspective layer({.factor = {0.2, 0.4}, .seed = 1});
  const Tensor y = layer(x, {.training = true});
  int64_t changed = 0;
  for (int64_t i = 0; i < 500; ++i) {
    const bool same =
        ops::slice(y, 0, i, 1).to_vector<float>() == ops::slice(x, 0, i, 1).to_vector<float>();
    changed += same ? 0 : 1;
  }
  EXPECT_NEAR(changed, 150, 5 * std::sqrt(105));
}

TEST(ElasticTransformTest, ShiftsAreSmoothAndOfTheRightSize) {
  // On a slope, values change by the shift of the column.
  constexpr int64_t kSize = 64;
  std::vector<float> slope;
  for (int64_t i = 0; i < kSize * kSize; ++i) slope.push_back(static_cast<float>(i % kSize));
  const Tensor x = testing_support::floats(slope, {kSize, kSize, 1});
  const double sigma = 3, alpha = 5;
  const Tensor y =
      keras_ops::image::elastic_transform(x, {.alpha = alpha, .sigma = sigma, .seed = 1});
  const std::vector<float> moved = y.to_vector<float>();
  double squares = 0, roughness = 0, count = 0;
  for (int64_t r = 8; r < kSize - 8; ++r) {
    for (int64_t c = 8; c < kSize - 8; ++c) {
      const double shift = moved[r * kSize + c] - slope[r * kSize + c];
      const double next = moved[r * kSize + c + 1] - slope[r * kSize + c + 1];
      squares += shift * shift;
      roughness += (next - shift) * (next - shift);
      ++count;
    }
  }
  // White noise of deviation sigma, smoothed by a Gaussian of sigma, has the deviation
  // sigma / (2 sigma sqrt(pi)).
  const double expected = alpha / (2 * std::sqrt(3.14159265));
  EXPECT_NEAR(std::sqrt(squares / count), expected, 0.25 * expected);
  EXPECT_LT(roughness, 0.1 * squares);
  expect_same_bits(
      keras_ops::image::elastic_transform(x, {.alpha = alpha, .sigma = sigma, .seed = 1}), y);
}

TEST(RandomElasticTransformTest, MasksMoveWithTheImages) {
  const RandomElasticTransform layer(
      {.factor = {1, 1}, .scale = {1, 1}, .interpolation = "nearest", .seed = 1});
  const Tensor x = ops::floor(random_images(2, 20));
  const Tensors out = layer(Tensors{{"images", x}, {"segmentation_masks", x.cast(DType::kInt32)}},
                            {.training = true});
  expect_same_bits(out["segmentation_masks"].tensor().cast(DType::kFloat32),
                   out["images"].tensor());
}

TEST(RandomGaussianBlurTest, BlursByTheDeviationsOfTheRange) {
  const Tensor x = random_images(2, 6);
  const RandomGaussianBlur layer({.factor = {1, 1}, .kernel_size = {5, 3}, .sigma = {0.7, 0.7}});
  expect_near(layer(x, {.training = true}), keras_ops::image::gaussian_blur(x, {5, 3}, {0.7, 0.7}),
              {.absolute = 1e-2});
  EXPECT_THROW(RandomGaussianBlur({.kernel_size = 4}), ValueError);
  EXPECT_THROW(RandomGaussianBlur({.sigma = 2}), ValueError);
}

TEST(RandomWarpTest, AreReproducibleAugmentations) {
  expect_augmentation("RandomPerspective", R"({"scale": 0.5})");
  expect_augmentation("RandomElasticTransform", R"({"factor": [0.9, 1], "scale": [0.9, 1]})");
  expect_augmentation("RandomGaussianBlur", R"({"factor": [0.5, 1], "sigma": [0.5, 1]})");
}

TEST(RandomWarpTest, RejectInvalidOptions) {
  EXPECT_THROW(RandomPerspective({.scale = 2}), ValueError);
  EXPECT_THROW(RandomPerspective({.interpolation = "cubic"}), ValueError);
  EXPECT_THROW(RandomElasticTransform({.fill_mode = "zero"}), ValueError);
  EXPECT_THROW(RandomElasticTransform({.scale = 2}), ValueError);
}

TEST(RandomWarpTest, MeetTheContractOfLayers) {
  const Specs images = float_spec({2, 2, 2, 3});
  expect_layer_contract({.class_name = "RandomPerspective",
                         .config = R"({"scale": 0.25})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomElasticTransform",
                         .config = R"({"scale": [0.25, 0.5], "fill_mode": "mirror"})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandomGaussianBlur",
                         .config = R"({"kernel_size": [3, 5], "sigma": 0.5})",
                         .inputs = images,
                         .output = images});
}

}  // namespace keel::random_warp_test
