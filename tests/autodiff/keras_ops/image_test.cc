// Tests autodiff/keras_ops/image.cc and the blocks of images in shapes.cc with examples that are
// worked by hand from Keras's formulas, where its recorded results have no case: sizes that are not
// square, channels_first, and integers.
#include <keel/autodiff/keras_ops/image.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/ops.h>

#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::image_ops_test {

namespace I = keras_ops::image;
using testing_support::expect_near;
using testing_support::floats;
using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;

Tensor bytes(const Bytes& values, const Shape& shape) { return Tensor::from(values, shape); }

TEST(ResizeTest, PadsBothEndsAlikeIfAnOddNumberOfRowsIsMissing) {
  // Five columns need five rows, of which three are missing: one is added at each end. Halving four
  // rows gives the means of pairs of rows; the columns are at 0.75 and 3.25.
  const Tensor x = floats({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, {1, 2, 5, 1});
  const I::ResizeOptions options = {.pad_to_aspect_ratio = true, .fill_value = 0.5};
  const std::vector<double> expected = {(0.5 + 0.75) / 2, (0.5 + 3.25) / 2, (5.75 + 0.5) / 2,
                                        (8.25 + 0.5) / 2};
  expect_near(I::resize(x, 2, options).to_vector<float>(), expected, {.absolute = 1e-6});
  // The same with rows and columns exchanged.
  const Tensor turned = I::resize(ops::transpose(x, {0, 2, 1, 3}), 2, options);
  expect_near(ops::transpose(turned, {0, 2, 1, 3}).to_vector<float>(), expected,
              {.absolute = 1e-6});
}

TEST(ResizeTest, OneMissingRowIsNotAdded) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {1, 2, 3, 1});
  EXPECT_EQ(
      I::resize(x, 3, {.interpolation = "nearest", .pad_to_aspect_ratio = true}).to_vector<float>(),
      (Floats{1, 2, 3, 4, 5, 6, 4, 5, 6}));
}

TEST(ResizeTest, RoundsIntegersHalfToEvenAndClipsThem) {
  // The columns of the result are at -0.25, 0.25, 0.75 and 1.25.
  EXPECT_EQ(I::resize(bytes({0, 3}, {1, 1, 2, 1}), {1, 4}).to_vector<uint8_t>(),
            (Bytes{0, 1, 2, 3}));
  // 1.5 and 2.5.
  EXPECT_EQ(I::resize(bytes({1, 2, 2, 3}, {1, 2, 2, 1}), {2, 1}).to_vector<uint8_t>(),
            (Bytes{2, 2}));
  // A cubic exceeds the range at both ends of a step.
  const Tensor step =
      I::resize(bytes({0, 0, 255, 255}, {1, 1, 4, 1}), {1, 8}, {.interpolation = "bicubic"});
  EXPECT_EQ(step.to_vector<uint8_t>()[2], 0);
  EXPECT_EQ(step.to_vector<uint8_t>()[5], 255);
}

TEST(GaussianBlurTest, TheFirstNumberIsThatOfTheColumns) {
  Floats values(9, 0);
  values[4] = 1;
  // exp(-x^2 / (2 sigma^2)) at -1, 0 and 1, divided by its sum.
  const double side_half = 0.1353352832 / 1.2706705665, half = 1 / 1.2706705665;
  const double side_two = 0.8824969026 / 2.7649938052, two = 1 / 2.7649938052;
  const Tensor y = I::gaussian_blur(floats(values, {3, 3, 1}), 3, {0.5, 2});
  expect_near(y.to_vector<float>(),
              std::vector<double>{side_two * side_half, side_two * half, side_two * side_half,
                                  two * side_half, two * half, two * side_half,
                                  side_two * side_half, side_two * half, side_two * side_half},
              {.absolute = 1e-6});
  // A filter of one column and three rows.
  expect_near(I::gaussian_blur(floats(values, {3, 3, 1}), {1, 3}, {1, 2}).to_vector<float>(),
              std::vector<double>{0, side_two, 0, 0, two, 0, 0, side_two, 0}, {.absolute = 1e-6});
}

TEST(BlocksTest, ChannelsFirstKeepsTheGroupsOfAChannelTogether) {
  const Tensor x = floats({0, 1, 2, 3, 4, 5, 6, 7}, {1, 8, 1, 1});
  const Tensor y = keras_ops::depth_to_space(x, 2, "channels_first");
  EXPECT_EQ(y.shape(), Shape({1, 2, 2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5, 6, 7}));
  const Tensor back = keras_ops::space_to_depth(y, 2, "channels_first");
  EXPECT_EQ(back.shape(), x.shape());
  EXPECT_EQ(back.to_vector<float>(), x.to_vector<float>());
}

TEST(BlocksTest, ChannelsLastKeepsTheChannelsOfAPixelTogether) {
  const Tensor x = floats({0, 1, 2, 3, 4, 5, 6, 7}, {1, 1, 1, 8});
  const Tensor y = keras_ops::depth_to_space(x, 2);
  EXPECT_EQ(y.shape(), Shape({1, 2, 2, 2}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 1, 2, 3, 4, 5, 6, 7}));
  EXPECT_EQ(keras_ops::space_to_depth(y, 2).to_vector<float>(), x.to_vector<float>());
}

TEST(PatchesTest, ElementsAreOrderedByPositionAndThenByChannel) {
  const Tensor x = floats({0, 1, 2, 3, 4, 5, 6, 7}, {1, 2, 2, 2});
  const Tensor y = I::extract_patches(x, 2, {}, 1, "valid", "channels_first");
  EXPECT_EQ(y.shape(), Shape({1, 8, 1, 1}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 4, 1, 5, 2, 6, 3, 7}));
  const Tensor back = I::reconstruct_patches(y, 2, 2, {}, "valid", "channels_first");
  EXPECT_EQ(back.to_vector<float>(), x.to_vector<float>());
}

TEST(TransformTest, IntegersAreRoundedAndKeepTheirDtype) {
  // Pixels at 0.5, 1.5 and 2.5; the last one is half outside.
  const Tensor x = bytes({1, 2, 4}, {1, 3, 1});
  const Tensor y = I::affine_transform(x, floats({1, 0, 0.5, 0, 1, 0, 0, 0}, {8}));
  EXPECT_EQ(y.dtype(), DType::kUint8);
  EXPECT_EQ(y.to_vector<uint8_t>(), (Bytes{2, 3, 2}));
  const Tensor corners = floats({0, 0, 2, 0, 0, 2, 2, 2}, {4, 2});
  const Tensor same = I::perspective_transform(x, corners, corners);
  EXPECT_EQ(same.dtype(), DType::kUint8);
  EXPECT_EQ(same.to_vector<uint8_t>(), x.to_vector<uint8_t>());
}

TEST(TransformTest, PerspectiveReadsTheStartAtTheEnd) {
  // The end is one column to the right of the start.
  const Tensor start = floats({0, 0, 2, 0, 0, 2, 2, 2}, {4, 2});
  const Tensor end = floats({1, 0, 3, 0, 1, 2, 3, 2}, {4, 2});
  const Tensor x = floats({1, 2, 3}, {1, 3, 1});
  expect_near(I::perspective_transform(x, start, end, "bilinear", 9).to_vector<float>(),
              std::vector<double>{9, 1, 2}, {.absolute = 1e-4});
  EXPECT_EQ(I::perspective_transform(x, start, end, "nearest", 9).to_vector<float>(),
            (Floats{9, 1, 2}));
}

TEST(ScaleAndTranslateTest, AntialiasWidensTheWindows) {
  // Halving puts the results at 0.5 and 2.5. Triangles of radius 2 have the weights 3/4, 3/4 and
  // 1/4 within the image, those of radius 1 have 1/2 and 1/2.
  const Tensor x = floats({0, 1, 2, 3}, {4});
  const auto halved = [&](bool antialias) {
    return I::scale_and_translate(x, {2}, {0.5}, {0}, {0}, "linear", antialias).to_vector<float>();
  };
  expect_near(halved(false), std::vector<double>{0.5, 2.5}, {.absolute = 1e-6});
  expect_near(halved(true), std::vector<double>{1.25 / 1.75, 3 - 1.25 / 1.75}, {.absolute = 1e-6});
}

TEST(MarginsTest, OneEndAndTheTargetGiveTheOtherEnd) {
  const Tensor x = floats({1, 2, 3, 4}, {2, 2, 1});
  const I::Margins after = {.bottom = 0, .right = 1, .target_height = 3, .target_width = 4};
  EXPECT_EQ(I::pad_images(x, after).to_vector<float>(),
            (Floats{0, 0, 0, 0, 0, 1, 2, 0, 0, 3, 4, 0}));
  const I::Margins cut = {.bottom = 1, .right = 0, .target_height = 1, .target_width = 1};
  EXPECT_EQ(I::crop_images(x, cut).to_vector<float>(), (Floats{2}));
}

TEST(PatchesTest, VolumesHaveStridesDilationAndPadding) {
  const Tensor x = floats({1, 2, 3, 4}, {1, 4, 1, 1, 1});
  EXPECT_EQ(I::extract_patches_3d(x, {2, 1, 1}, {{1, 1, 1}}, 2).to_vector<float>(),
            (Floats{1, 3, 2, 4}));
  // Three patches of three cells with a step of 2 begin one cell before the volume if padded.
  EXPECT_EQ(I::extract_patches_3d(x, {3, 1, 1}, {{2, 1, 1}}, 1, "same").to_vector<float>(),
            (Floats{1, 2, 3, 3, 4, 0}));
}

TEST(SsimTest, MatchesTheFormulaInAWindowOfFourEqualWeights) {
  // A filter of two taps has the weights 1/2. Means 1 and 2, variances 1 and 4, covariance 2;
  // c1 = (0.1 * 4)^2 and c2 = (0.2 * 4)^2.
  const Tensor a = floats({0, 2, 0, 2}, {1, 2, 2, 1}), b = a * 2.0;
  const double expected = (2 * 1 * 2 + 0.16) * (2 * 2 + 0.64) / ((1 + 4 + 0.16) * (1 + 4 + 0.64));
  expect_near(I::ssim(a, b, 4, 2, 1.5, 0.1, 0.2).to_vector<float>(), std::vector<double>{expected},
              {.absolute = 1e-6});
}

TEST(ColorsTest, GreyOfIntegersIsTruncated) {
  // 0.2989 r + 0.587 g + 0.114 b is 76.2195, 18.149 and 0.912.
  const Tensor x = bytes({255, 0, 0, 10, 20, 30, 0, 0, 8}, {1, 3, 3});
  EXPECT_EQ(I::rgb_to_grayscale(x).to_vector<uint8_t>(), (Bytes{76, 18, 0}));
}

TEST(ColorsTest, ColorsBelowTheMachineEpsilonAreBlack) {
  const Tensor y = I::rgb_to_hsv(floats({1e-8F, 0, 0, 0.5, 0, 1e-8F}, {1, 2, 3}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0, 0, 0, 0, 1, 0.5}));
}

TEST(ColorsTest, HuesRepeat) {
  // A quarter of the circle is 1.5 sixths: red 0.5 and green 1.
  const Tensor y = I::hsv_to_rgb(floats({0.25, 1, 1, 1.25, 1, 1, -0.75, 1, 1}, {1, 3, 3}));
  EXPECT_EQ(y.to_vector<float>(), (Floats{0.5, 1, 0, 0.5, 1, 0, 0.5, 1, 0}));
}

TEST(ChannelsFirstTest, GivesTheSameNumbers) {
  Floats values;
  for (int i = 0; i < 2 * 4 * 5 * 3; ++i) values.push_back(static_cast<float>(i * 37 % 101) / 101);
  const Tensor x = floats(values, {2, 4, 5, 3}), first = ops::transpose(x, {0, 3, 1, 2});
  const auto expect_same = [](const Tensor& last, const Tensor& received) {
    testing_support::expect_same_bits(ops::transpose(received, {0, 2, 3, 1}), last);
  };
  const std::string format = "channels_first";
  expect_same(I::resize(x, {3, 7}, {.pad_to_aspect_ratio = true}),
              I::resize(first, {3, 7}, {.pad_to_aspect_ratio = true, .data_format = format}));
  expect_same(I::crop_images(x, {.top = 1, .left = 2, .bottom = 0, .right = 1}),
              I::crop_images(first, {.top = 1, .left = 2, .bottom = 0, .right = 1}, format));
  expect_same(I::pad_images(x, {.top = 1, .left = 2, .bottom = 0, .right = 1}),
              I::pad_images(first, {.top = 1, .left = 2, .bottom = 0, .right = 1}, format));
  expect_same(I::rgb_to_grayscale(x), I::rgb_to_grayscale(first, format));
  expect_same(I::rgb_to_hsv(x), I::rgb_to_hsv(first, format));
  expect_same(I::hsv_to_rgb(x), I::hsv_to_rgb(first, format));
  expect_same(I::extract_patches(x, {2, 3}),
              I::extract_patches(first, {2, 3}, {}, 1, "valid", format));
  expect_same(I::gaussian_blur(x, {3, 1}, {2, 1}), I::gaussian_blur(first, {3, 1}, {2, 1}, format));
  testing_support::expect_same_bits(ops::transpose(I::sobel_edges(first, format), {0, 2, 3, 1, 4}),
                                    I::sobel_edges(x));
  const Tensor shear = floats({1, 0.25, 0.5, 0, 1, 0, 0, 0}, {8});
  expect_same(I::affine_transform(x, shear),
              I::affine_transform(first, shear, "bilinear", "constant", 0, format));
  EXPECT_EQ(I::ssim(x, x * 0.5, 1, 3, 1.5, 0.01, 0.03).to_vector<float>(),
            I::ssim(first, first * 0.5, 1, 3, 1.5, 0.01, 0.03, format).to_vector<float>());
}

}  // namespace keel::image_ops_test
