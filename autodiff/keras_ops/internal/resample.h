// Resampling of images at arbitrary coordinates.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include <keel/framework/base/function_ref.h>
#include <keel/framework/tensor.h>

namespace keel::keras_ops::internal {

// What is outside of an image: a constant, the nearest pixel, or the image itself, repeated or
// reflected without (mirror) or with its edge (reflect).
enum class FillMode { kConstant, kNearest, kWrap, kMirror, kReflect };
// Converts Keras's name. Throws ValueError for another one.
FillMode fill_mode_of(const std::string& name);
// Returns the position on an axis of n > 0 elements that stands for position i, which may lie
// outside, or kFill.
int64_t position_at(int64_t i, int64_t n, FillMode mode);

// How pixels are read between positions and outside of the image.
struct Resampling {
  std::string interpolation = "bilinear";  // or "nearest"
  std::string fill_mode = "constant";      // see fill_mode_of()
  double fill_value = 0;                   // for the mode "constant"
};
// Returns the coordinates (x, y) of the input for the pixel (x, y) of a result. Called by several
// threads at once.
using PixelMap = FunctionRef<std::pair<double, double>(int64_t image, int64_t x, int64_t y)>;
// Returns images [batch, height, width, channels] of the same shape, whose pixels are those of
// floating-point `images` at the coordinates of `map`. Differentiable in the images.
Tensor pixels_moved(const Tensor& images, PixelMap map, const Resampling& how);

// Moves the pixels of images [batch, height, width, channels] by alpha times smoothed noise. The
// noise [batch, height, width, 1] of each direction is multiplied by sigma and smoothed by a
// Gaussian of this standard deviation (Simard et al. 2003).
Tensor elastically_moved(const Tensor& images, const Tensor& noise_x, const Tensor& noise_y,
                         double alpha, double sigma, const Resampling& how);

}  // namespace keel::keras_ops::internal
