// The functions of keras.ops.image. Images are [height, width, channels] or [batch, height, width,
// channels], or have the channels first with data_format "channels_first". Functions are
// differentiable in the images.
#pragma once

#include <string>
#include <vector>

#include <keel/autodiff/keras_ops/operand.h>
#include <keel/autodiff/keras_ops/shapes.h>

namespace keel::keras_ops::image {

// ---- Resizing.

// The optional arguments of resize().
struct ResizeOptions {
  // "nearest", "bilinear", "bicubic", "lanczos3" or "lanczos5"; see ops::resize_axis().
  std::string interpolation = "bilinear";
  bool antialias = false;                     // widen the windows when images become smaller
  bool crop_to_aspect_ratio = false;          // first crop the center to the ratio of the new size
  bool pad_to_aspect_ratio = false;           // first pad both ends alike, nearly to this ratio
  std::string fill_mode = "constant";         // the only one
  double fill_value = 0;                      // for padding
  std::string data_format = "channels_last";  // or "channels_first"
};
// Returns images of another size, in the same dtype: integers are rounded, half to even, and
// clipped to their range. If an odd number of rows or columns is missing, padding adds one less.
Tensor resize(const Tensor& images, Pair size, const ResizeOptions& options = {});
// Resamples the axes `spatial_dims` by factors and offsets. `method` is "linear", "cubic",
// "lanczos3" or "lanczos5".
Tensor scale_and_translate(const Tensor& images, const Shape& output_shape,
                           const std::vector<double>& scale, const std::vector<double>& translation,
                           const std::vector<int>& spatial_dims, const std::string& method,
                           bool antialias = true);

// ---- Cropping and padding. Of the two ends and the target size, two determine the third.

// The elements at each end of the height and the width, and the size of the result.
struct Margins {
  std::optional<int64_t> top = {};            // elements above
  std::optional<int64_t> left = {};           // elements on the left
  std::optional<int64_t> bottom = {};         // elements below
  std::optional<int64_t> right = {};          // elements on the right
  std::optional<int64_t> target_height = {};  // height of the result
  std::optional<int64_t> target_width = {};   // width of the result
};
// Remove or add elements around images.
Tensor crop_images(const Tensor& images, const Margins& cropping,
                   const std::string& data_format = "channels_last");
Tensor pad_images(const Tensor& images, const Margins& padding,
                  const std::string& data_format = "channels_last");

// ---- Colors, which are in [0, 1].

// Convert the colors of images with three channels. Grey values of integers are truncated. Colors
// below the machine epsilon count as 0, and hues outside [0, 1) repeat.
Tensor rgb_to_grayscale(const Tensor& images, const std::string& data_format = "channels_last");
Tensor rgb_to_hsv(const Tensor& images, const std::string& data_format = "channels_last");
Tensor hsv_to_rgb(const Tensor& images, const std::string& data_format = "channels_last");

// ---- Patches: [batch, rows, columns, elements of the patch by position and channel].

// Returns the patches of `size`, which are next to each other unless `strides` is given.
Tensor extract_patches(const Tensor& images, Pair size, std::optional<Pair> strides = {},
                       Pair dilation_rate = 1, const std::string& padding = "valid",
                       const std::string& data_format = "channels_last");
// Returns the patches of volumes [batch, depth, height, width, channels]; they have three sizes.
Tensor extract_patches_3d(const Tensor& volumes, const std::vector<int64_t>& size,
                          const std::optional<std::vector<int64_t>>& strides = {},
                          int64_t dilation_rate = 1, const std::string& padding = "valid",
                          const std::string& data_format = "channels_last");
// Returns images whose patches are given; where patches overlap, the mean of their elements.
Tensor reconstruct_patches(const Tensor& patches, Pair size, Pair output_size,
                           std::optional<Pair> strides = {}, const std::string& padding = "valid",
                           const std::string& data_format = "channels_last");

// ---- Filters, with zeros around the image.

// Returns the means of neighbors, weighted by a Gaussian. As in Keras 3.16 and before, the first
// number of `kernel_size` and `sigma` is that of the columns, the second one that of the rows.
Tensor gaussian_blur(const Tensor& images, Pair kernel_size = 3,
                     std::pair<double, double> sigma = {1, 1},
                     const std::string& data_format = "channels_last");
// Returns the derivatives along the height and the width in a new last axis.
Tensor sobel_edges(const Tensor& images, const std::string& data_format = "channels_last");
// Returns the structural similarity of images (Wang et al. 2004), one number for each pair.
Tensor ssim(const Tensor& image1, const Tensor& image2, double max_val = 1,
            int64_t filter_size = 11, double filter_sigma = 1.5, double k1 = 0.01, double k2 = 0.03,
            const std::string& data_format = "channels_last");

// ---- Geometric transformations.

// Returns the elements of `inputs` at coordinates [rank, ...], interpolated linearly (order 1) or
// from the nearest position (order 0). `fill_mode` selects the values outside: "constant"
// (fill_value), "nearest", "wrap", "mirror" (without the edge) or "reflect" (with it).
Tensor map_coordinates(const Tensor& inputs, const Tensor& coordinates, int order,
                       const std::string& fill_mode = "constant", double fill_value = 0);
// Results have the dtype of the images; integers are rounded and clipped to their range.
// Output pixel (x, y) is the input at (a0 x + a1 y + a2, b0 x + b1 y + b2), for transforms [8] or
// [batch, 8] of a0, a1, a2, b0, b1, b2, 0, 0. `interpolation` is "nearest" or "bilinear".
Tensor affine_transform(const Tensor& images, const Tensor& transform,
                        const std::string& interpolation = "bilinear",
                        const std::string& fill_mode = "constant", double fill_value = 0,
                        const std::string& data_format = "channels_last");
// Moves four points (x, y) of each image, [4, 2] or [batch, 4, 2], to others.
Tensor perspective_transform(const Tensor& images, const Tensor& start_points,
                             const Tensor& end_points,
                             const std::string& interpolation = "bilinear", double fill_value = 0,
                             const std::string& data_format = "channels_last");

// The optional arguments of elastic_transform().
struct ElasticOptions {
  double alpha = 20;                          // strength: the shifts are alpha times smooth noise
  double sigma = 5;                           // standard deviation of the noise and its smoothing
  std::string interpolation = "bilinear";     // or "nearest"
  std::string fill_mode = "reflect";          // see map_coordinates()
  double fill_value = 0;                      // for the mode "constant"
  std::optional<int64_t> seed = {};           // unset: the next stream of set_random_seed()
  std::string data_format = "channels_last";  // or "channels_first"
};
// Moves pixels by smooth random shifts (Simard et al. 2003), which depend only on the seed.
Tensor elastic_transform(const Tensor& images, const ElasticOptions& options = {});

}  // namespace keel::keras_ops::image
