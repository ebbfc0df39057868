#include <keel/layers/image/adaptive_equalization.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/ops.h>

#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::adaptive_equalization_test {

using Clahe = layers::ContrastLimitedAdaptiveHistogramEqualization;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::expect_same_bits;
using testing_support::float_spec;
using testing_support::floats;
using testing_support::random_images;

TEST(AdaptiveEqualizationTest, OneTileWithoutALimitEqualizesTheImage) {
  // The counts of 0 and of levels up to each value, less those of 0, divided by the others.
  const Clahe layer({.clip_limit = 0, .tile_grid_size = 1});
  const Tensor x = floats({0, 10, 20, 20}, {1, 2, 2, 1});
  expect_near(layer(x), floats({0, 85, 255, 255}, {1, 2, 2, 1}), {.absolute = 1e-3});
}

TEST(AdaptiveEqualizationTest, TheLimitSpreadsCountsEvenly) {
  // A single level in all 256 pixels: one count remains, the others are spread over all levels.
  const Clahe layer({.clip_limit = 1, .tile_grid_size = 1});
  const Tensor x = Tensor::full<float>({1, 16, 16, 1}, 100);
  const double each = 255.0 / 256;
  const double expected = (100 * each + 1) * 255 / (256 - each);
  expect_near(layer(x), Tensor::full<float>({1, 16, 16, 1}, static_cast<float>(expected)),
              {.absolute = 1e-2});
}

TEST(AdaptiveEqualizationTest, PixelsBetweenTilesAreInterpolated) {
  // The left tile has the levels 0 and 100, the right one 100 and 200.
  const Clahe layer({.clip_limit = 0, .tile_grid_size = {1, 2}});
  const Tensor x = floats({0, 100, 100, 200}, {1, 1, 4, 1});
  // Level 100 is 255 on the left and, with two of two pixels counted, 127.5 on the right; tiles
  // have their centers at columns 1 and 3.
  const std::vector<float> y = layer(x).to_vector<float>();
  EXPECT_NEAR(y[0], 0, 1e-3);
  EXPECT_NEAR(y[1], 255, 1e-3);
  EXPECT_NEAR(y[2], (255 + 127.5) / 2, 1e-3);
  EXPECT_NEAR(y[3], 255, 1e-3);
}

TEST(AdaptiveEqualizationTest, ImagesAreMirroredWithTheirEdge) {
  // Three tiles of three columns: the image ends with 60, 60, 70, as numpy.pad does with the mode
  // "symmetric". Repeating the edge or leaving it out would give the last pixel 170 or 85.
  const Clahe layer({.clip_limit = 0, .tile_grid_size = {1, 3}});
  const std::vector<float> y =
      layer(floats({0, 0, 0, 50, 80, 70, 60}, {1, 1, 7, 1})).to_vector<float>();
  // The last pixel is between two tiles. Of three pixels, one in 50, 80, 70 and two in 60, 60, 70
  // are at most 60.
  EXPECT_NEAR(y[6], (85 + 170) / 2.0, 1e-3);
}

TEST(AdaptiveEqualizationTest, RangesDtypesAndFormats) {
  const Tensor x = random_images(2, 13);
  const Tensor y = Clahe({})(x);
  expect_near(Clahe({.value_range = {0, 1}})(x / 255.0) * 255.0, y, {.absolute = 2});
  const Tensor first = Clahe({.data_format = "channels_first"})(ops::transpose(x, {0, 3, 1, 2}));
  expect_same_bits(ops::transpose(first, {0, 2, 3, 1}), y);
  const Tensor whole = ops::floor(x);
  EXPECT_EQ(Clahe({})(whole.cast(DType::kUint8)).to_vector<uint8_t>(),
            Clahe({})(whole).cast(DType::kUint8).to_vector<uint8_t>());
  EXPECT_THROW(Clahe({.tile_grid_size = {0, 1}}), ValueError);
}

TEST(AdaptiveEqualizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "ContrastLimitedAdaptiveHistogramEqualization",
                         .config = R"({"clip_limit": 2.5, "tile_grid_size": [2, 1]})",
                         .inputs = float_spec({2, 2, 2, 3}),
                         .output = float_spec({2, 2, 2, 3})});
}

TEST(AdaptiveEqualizationTest, NanCountsAsZeroAndGridsAreLimited) {
  const Clahe layer({.clip_limit = 0, .tile_grid_size = 1});
  const Tensor x = floats({std::nanf(""), 10, 20, 20}, {1, 2, 2, 1});
  expect_near(layer(x), floats({0, 85, 255, 255}, {1, 2, 2, 1}), {.absolute = 1e-3});
  EXPECT_THROW(Clahe({.tile_grid_size = {1, 4097}}), ValueError);
}

}  // namespace keel::adaptive_equalization_test
