#include <keel/autodiff/keras_ops/image.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/core.h>
#include <keel/autodiff/keras_ops/creation.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/internal/resample.h>
#include <keel/autodiff/keras_ops/linalg.h>
#include <keel/autodiff/keras_ops/products.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/spatial_ops.h>
#include <keel/framework/base/function_ref.h>
#include <keel/framework/random.h>

namespace keel::keras_ops::image {
namespace {

using internal::floating;
using internal::kFill;
using Numbers = std::vector<double>;

// Calls fn on images [batch, height, width, channels] and restores rank and data format.
Tensor on_batch(const char* name, const Tensor& images, const std::string& data_format,
                FunctionRef<Tensor(const Tensor&)> fn) {
  const bool first = data_format == "channels_first";
  if ((!first && data_format != "channels_last") || (images.rank() != 3 && images.rank() != 4)) {
    throw ValueError(name, ": requires images of rank 3 or 4 and data_format channels_last or ",
                     "channels_first, received shape ", images.shape(), " and '", data_format, "'");
  }
  const bool single = images.rank() == 3;
  Tensor x = single ? ops::expand_dims(images, 0) : images;
  if (first) x = moveaxis(x, {1}, {3});
  x = fn(x);
  if (first) x = moveaxis(x, {3}, {1});
  return single ? ops::squeeze(x, 0) : x;
}

// Casts results to the dtype of the images: to integers, rounded and clipped to their range.
Tensor in_dtype_of(const Tensor& images, const Tensor& result) {
  if (is_floating(images.dtype())) return ops::cast(result, images.dtype());
  return saturate_cast(round(result), images.dtype());
}

// ---- Linear maps along an axis.

// Multiplies an axis of x by a matrix [inputs, outputs].
Tensor mapped(const Tensor& x, int axis, const Numbers& matrix, int64_t outputs) {
  const Tensor weights = Tensor::from(matrix, {x.dim(axis), outputs}).cast(x.dtype());
  return moveaxis(tensordot(x, weights, {{axis}, {0}}), {-1}, {axis});
}

// The correlation of an axis with taps; position i of the result begins `before` positions earlier.
Tensor filtered(const Tensor& x, int axis, const Numbers& taps, int64_t before, int64_t outputs) {
  const int64_t n = x.dim(axis);
  Numbers matrix(n * outputs);
  for (int64_t o = 0; o < outputs; ++o) {
    for (size_t k = 0; k < taps.size(); ++k) {
      const int64_t i = o - before + static_cast<int64_t>(k);
      if (i >= 0 && i < n) matrix[i * outputs + o] = taps[k];
    }
  }
  return mapped(x, axis, matrix, outputs);
}
Tensor filtered(const Tensor& x, int axis, const Numbers& taps) {
  return filtered(x, axis, taps, static_cast<int64_t>(taps.size() - 1) / 2, x.dim(axis));
}

Numbers gaussian(int64_t size, double sigma) {
  Numbers out;
  double total = 0;
  for (int64_t i = 0; i < size; ++i) {
    const double at = (static_cast<double>(i) - static_cast<double>(size - 1) / 2) / sigma;
    total += out.emplace_back(std::exp(-0.5 * at * at));
  }
  for (double& tap : out) tap /= total;
  return out;
}

// The weight of an element at a distance, for the methods of scale_and_translate().
double resampling_weight(const std::string& method, double distance) {
  const double x = std::abs(distance);
  if (method == "linear" || method == "bilinear" || method == "trilinear" || method == "triangle") {
    return std::max(0.0, 1 - x);
  }
  if (method == "cubic" || method == "bicubic" || method == "tricubic") {
    if (x >= 2) return 0;
    return x < 1 ? (1.5 * x - 2.5) * x * x + 1 : ((-0.5 * x + 2.5) * x - 4) * x + 2;
  }
  if (method != "lanczos3" && method != "lanczos5") {
    throw ValueError("resize: unknown interpolation '", method,
                     "'; use linear, cubic, lanczos3 or lanczos5");
  }
  const double radius = method == "lanczos3" ? 3 : 5;
  if (x >= radius) return 0;
  if (x < 1e-9) return 1;
  const double turn = std::numbers::pi * x;
  return radius * std::sin(turn) * std::sin(turn / radius) / (turn * turn);
}

// Resamples an axis: position o of the result is position (o + 0.5 - translation) / scale - 0.5.
Tensor resampled(const Tensor& x, int axis, int64_t outputs, double scale, double translation,
                 const std::string& method, bool antialias) {
  const int64_t n = x.dim(axis);
  const double width = antialias ? std::max(1 / scale, 1.0) : 1;
  Numbers matrix(n * outputs);
  for (int64_t o = 0; o < outputs; ++o) {
    const double at = (static_cast<double>(o) + 0.5 - translation) / scale - 0.5;
    if (at < -0.5 || at > static_cast<double>(n) - 0.5) continue;
    double total = 0;
    for (int64_t i = 0; i < n; ++i) {
      total += matrix[i * outputs + o] =
          resampling_weight(method, (static_cast<double>(i) - at) / width);
    }
    for (int64_t i = 0; i < n; ++i) {
      matrix[i * outputs + o] = std::abs(total) > 1e-4 ? matrix[i * outputs + o] / total : 0;
    }
  }
  return mapped(x, axis, matrix, outputs);
}

// Crops or pads the center of an image to the ratio height : width.
Tensor with_ratio(const Tensor& x, Pair ratio, bool crops, double fill_value) {
  const int64_t h = x.dim(1), w = x.dim(2);
  int64_t height = w * ratio.height / ratio.width, width = h * ratio.width / ratio.height;
  if (crops) {
    height = std::max<int64_t>(std::min(h, height), 1);
    width = std::max<int64_t>(std::min(w, width), 1);
    return ops::slice(ops::slice(x, 1, (h - height) / 2, height), 2, (w - width) / 2, width);
  }
  // Both ends get the same number of pixels. If an odd number is missing, the padded image has one
  // less, and its ratio is not exact.
  const int64_t rows = (std::max(h, height) - h) / 2, columns = (std::max(w, width) - w) / 2;
  return pad(x, {{0, 0}, {rows, rows}, {columns, columns}, {0, 0}}, "constant", fill_value);
}

// ---- Patches.

using Sizes = std::vector<int64_t>;

// The windows along one axis.
struct PatchAxis {
  int64_t count, before;
};

PatchAxis patch_axis(int64_t n, int64_t size, int64_t stride, int64_t dilation,
                     const std::string& padding) {
  if (size < 1 || stride < 1 || dilation < 1) {
    throw ValueError("extract_patches: size, strides and dilation_rate must be positive");
  }
  const int64_t span = (size - 1) * dilation + 1;
  if (padding == "valid") return {n < span ? 0 : (n - span) / stride + 1, 0};
  if (padding != "same") {
    throw ValueError("extract_patches: padding must be valid or same, received '", padding, "'");
  }
  const int64_t count = (n + stride - 1) / stride;
  return {count, std::max<int64_t>((count - 1) * stride + span - n, 0) / 2};
}

struct Patches {
  Shape shape;      // [batch, counts ..., elements]
  Sizes positions;  // position of each element in the images [batch, sizes ..., channels]
};

Patches patches_of(const Shape& images, const Sizes& size, const Sizes& strides,
                   const Sizes& dilation, const std::string& padding) {
  const int axes = images.rank() - 2;
  Sizes index_dims = {images[0]};
  std::vector<PatchAxis> along;
  for (int i = 0; i < axes; ++i) {
    along.push_back(patch_axis(images[i + 1], size[i], strides[i], dilation[i], padding));
    index_dims.push_back(along.back().count);
  }
  Patches out;
  int64_t elements = images[-1];
  for (const int64_t n : size) elements *= n;
  out.shape = Shape(index_dims) + Shape{elements};
  index_dims.insert(index_dims.end(), size.begin(), size.end());
  index_dims.push_back(images[-1]);
  internal::for_each_index(Shape(index_dims), [&](const auto& index) {
    int64_t at = index[0];
    for (int i = 0; i < axes; ++i) {
      const int64_t p =
          index[1 + i] * strides[i] + index[1 + axes + i] * dilation[i] - along[i].before;
      if (p < 0 || p >= images[i + 1]) at = kFill;
      if (at != kFill) at = at * images[i + 1] + p;
    }
    out.positions.push_back(at == kFill ? kFill : at * images[-1] + index.back());
  });
  return out;
}

Sizes both(Pair pair) { return {pair.height, pair.width}; }

// ---- Coordinates.

// Returns the projective map of 8 numbers that takes each end point to its start point.
Numbers homography(const double* start, const double* end) {
  Numbers matrix, right;
  for (int i = 0; i < 4; ++i) {
    const double u = start[2 * i], v = start[2 * i + 1], x = end[2 * i], y = end[2 * i + 1];
    matrix.insert(matrix.end(), {x, y, 1, 0, 0, 0, -u * x, -u * y});
    matrix.insert(matrix.end(), {0, 0, 0, x, y, 1, -v * x, -v * y});
    right.insert(right.end(), {u, v});
  }
  return internal::doubles_of(solve(Tensor::from(matrix, {8, 8}), Tensor::from(right, {8})));
}

// Returns 8 or [4, 2] numbers for each image of a batch.
std::vector<Numbers> for_each_image(const char* name, const Tensor& values, int64_t batch) {
  const Numbers all = internal::doubles_of(values);
  if (all.size() != 8 && static_cast<int64_t>(all.size()) != 8 * batch) {
    throw ValueError(name, ": requires 8 numbers for each image, received shape ", values.shape());
  }
  std::vector<Numbers> out;
  for (int64_t b = 0; b < batch; ++b) {
    const auto first = all.begin() + (all.size() == 8 ? 0 : 8 * b);
    out.emplace_back(first, first + 8);
  }
  return out;
}

}  // namespace

// ---- Resizing.

Tensor resize(const Tensor& images, Pair size, const ResizeOptions& options) {
  if (options.fill_mode != "constant") {
    throw ValueError("resize: fill_mode must be constant, received '", options.fill_mode, "'");
  }
  if (options.crop_to_aspect_ratio && options.pad_to_aspect_ratio) {
    throw ValueError(
        "resize: received both crop_to_aspect_ratio and pad_to_aspect_ratio; set one of them");
  }
  if (size.height < 1 || size.width < 1) throw ValueError("resize: size must be positive");
  return on_batch("resize", images, options.data_format, [&](const Tensor& in) {
    Tensor x = floating(in);
    if (options.crop_to_aspect_ratio || options.pad_to_aspect_ratio) {
      x = with_ratio(x, size, options.crop_to_aspect_ratio, options.fill_value);
    }
    for (const auto& [axis, to] : {std::pair(1, size.height), std::pair(2, size.width)}) {
      if (options.antialias && options.interpolation != "nearest") {
        const double scale = static_cast<double>(to) / static_cast<double>(x.dim(axis));
        x = resampled(x, axis, to, scale, 0, options.interpolation, true);
      } else {
        x = ops::resize_axis(x, axis, to, options.interpolation);
      }
    }
    return in_dtype_of(in, x);
  });
}

Tensor scale_and_translate(const Tensor& images, const Shape& output_shape,
                           const std::vector<double>& scale, const std::vector<double>& translation,
                           const std::vector<int>& spatial_dims, const std::string& method,
                           bool antialias) {
  if (scale.size() != spatial_dims.size() || translation.size() != spatial_dims.size()) {
    throw ValueError("scale_and_translate: scale and translation must have one number for each of ",
                     spatial_dims.size(), " spatial_dims");
  }
  Tensor x = floating(images);
  for (size_t i = 0; i < spatial_dims.size(); ++i) {
    const int axis = x.shape().normalize_axis(spatial_dims[i]);
    x = resampled(x, axis, output_shape[axis], scale[i], translation[i], method, antialias);
  }
  return x;
}

// ---- Cropping and padding.

namespace {

// Returns the elements at the two ends of an axis; `total` is their sum if a target is given.
std::pair<int64_t, int64_t> ends_of(const char* name, std::optional<int64_t> before,
                                    std::optional<int64_t> after, std::optional<int64_t> total) {
  if (!before && !after) {
    throw ValueError(
        name, ": neither end of an axis is given; pass one end, or both without the target size");
  }
  if ((before && after) == total.has_value()) {
    throw ValueError(name, ": received ",
                     total ? "both ends and the target size of an axis"
                           : "one end of an axis and no target size",
                     "; pass both ends, or one end and the target size");
  }
  const int64_t first = before ? *before : *total - *after;
  const int64_t last = after ? *after : *total - *before;
  if (first < 0 || last < 0) {
    throw ValueError(name, ": an end of an axis must not be negative, received ", first, " and ",
                     last, "; change the target size or the other end");
  }
  return {first, last};
}

}  // namespace

Tensor crop_images(const Tensor& images, const Margins& cropping, const std::string& data_format) {
  return on_batch("crop_images", images, data_format, [&](const Tensor& x) {
    const auto rest = [](int64_t size, std::optional<int64_t> target) {
      return target ? std::optional(size - *target) : std::nullopt;
    };
    const auto [top, bottom] = ends_of("crop_images", cropping.top, cropping.bottom,
                                       rest(x.dim(1), cropping.target_height));
    const auto [left, right] = ends_of("crop_images", cropping.left, cropping.right,
                                       rest(x.dim(2), cropping.target_width));
    return ops::slice(ops::slice(x, 1, top, x.dim(1) - top - bottom), 2, left,
                      x.dim(2) - left - right);
  });
}

Tensor pad_images(const Tensor& images, const Margins& padding, const std::string& data_format) {
  return on_batch("pad_images", images, data_format, [&](const Tensor& x) {
    const auto rest = [](int64_t size, std::optional<int64_t> target) {
      return target ? std::optional(*target - size) : std::nullopt;
    };
    const auto [top, bottom] =
        ends_of("pad_images", padding.top, padding.bottom, rest(x.dim(1), padding.target_height));
    const auto [left, right] =
        ends_of("pad_images", padding.left, padding.right, rest(x.dim(2), padding.target_width));
    return ops::pad(ops::pad(x, 1, top, bottom), 2, left, right);
  });
}

// ---- Colors.

Tensor rgb_to_grayscale(const Tensor& images, const std::string& data_format) {
  return on_batch("rgb_to_grayscale", images, data_format, [](const Tensor& x) {
    const Tensor weights = Tensor::from({0.2989, 0.5870, 0.1140}, {3});
    const Tensor in = floating(x);
    return ops::cast(ops::sum(in * weights.cast(in.dtype()), {3}, true), x.dtype());
  });
}

Tensor rgb_to_hsv(const Tensor& images, const std::string& data_format) {
  return on_batch("rgb_to_hsv", images, data_format, [](const Tensor& x) {
    const Tensor in = floating(x);
    // Keras takes colors below the machine epsilon as black.
    const double machine_epsilon = in.dtype() == DType::kFloat64 ? 0x1p-52 : 0x1p-23;
    const Tensor epsilon = Tensor::full<double>({}, machine_epsilon).cast(in.dtype());
    const Tensor visible = ops::where(ops::less(ops::abs(in), epsilon), ops::zeros_like(in), in);
    const std::vector<Tensor> rgb = ops::split(visible, 3, 3);
    const Tensor &r = rgb[0], &g = rgb[1], &b = rgb[2];
    const Tensor value = ops::maximum(r, ops::maximum(g, b));
    const Tensor range = value - ops::minimum(r, ops::minimum(g, b));
    const Tensor saturation = ops::divide_no_nan(range, value);
    const Tensor sixth = ops::divide_no_nan(ops::ones_like(range) / 6.0, range);
    const Tensor of_g = sixth * (b - r) + 2.0 / 6, of_b = sixth * (r - g) + 4.0 / 6;
    Tensor hue = ops::where(ops::equal(value, r), sixth * (g - b),
                            ops::where(ops::equal(value, g), of_g, of_b));
    const Tensor zero = ops::zeros_like(range);
    hue = ops::where(ops::greater(range, zero), hue, zero);
    hue = ops::where(ops::less(hue, zero), hue + 1.0, hue);
    return ops::concat({hue, saturation, value}, 3);
  });
}

Tensor hsv_to_rgb(const Tensor& images, const std::string& data_format) {
  return on_batch("hsv_to_rgb", images, data_format, [](const Tensor& x) {
    const std::vector<Tensor> hsv = ops::split(floating(x), 3, 3);
    const Tensor sixths = (hsv[0] - ops::floor(hsv[0])) * 6.0;  // hues repeat
    const auto part = [&](double center, double sign, double offset) {
      const Tensor distance = ops::abs(sixths - center) * sign + offset;
      return ((ops::clip_by_value(distance, 0, 1) - 1.0) * hsv[1] + 1.0) * hsv[2];
    };
    return ops::concat({part(3, 1, -1), part(2, -1, 2), part(4, -1, 2)}, 3);
  });
}

// ---- Patches.

Tensor extract_patches(const Tensor& images, Pair size, std::optional<Pair> strides,
                       Pair dilation_rate, const std::string& padding,
                       const std::string& data_format) {
  return on_batch("extract_patches", images, data_format, [&](const Tensor& x) {
    const Patches patches = patches_of(x.shape(), both(size), both(strides.value_or(size)),
                                       both(dilation_rate), padding);
    return internal::take_flat(x, patches.positions, patches.shape);
  });
}

Tensor extract_patches_3d(const Tensor& volumes, const std::vector<int64_t>& size,
                          const std::optional<std::vector<int64_t>>& strides, int64_t dilation_rate,
                          const std::string& padding, const std::string& data_format) {
  const bool first = data_format == "channels_first";
  if (volumes.rank() != 5 || size.size() != 3 || strides.value_or(size).size() != 3) {
    throw ValueError("extract_patches_3d: requires volumes of rank 5 and three sizes, received ",
                     volumes.shape());
  }
  const Tensor x = first ? moveaxis(volumes, {1}, {4}) : volumes;
  const Patches patches =
      patches_of(x.shape(), size, strides.value_or(size), Sizes(3, dilation_rate), padding);
  const Tensor out = internal::take_flat(x, patches.positions, patches.shape);
  return first ? moveaxis(out, {4}, {1}) : out;
}

Tensor reconstruct_patches(const Tensor& patches, Pair size, Pair output_size,
                           std::optional<Pair> strides, const std::string& padding,
                           const std::string& data_format) {
  return on_batch("reconstruct_patches", patches, data_format, [&](const Tensor& x) {
    const int64_t channels = x.dim(3) / (size.height * size.width);
    const Shape image = {x.dim(0), output_size.height, output_size.width, channels};
    const Patches from =
        patches_of(image, both(size), both(strides.value_or(size)), {1, 1}, padding);
    if (from.shape != x.shape()) {
      throw ValueError("reconstruct_patches: images of ", image, " have patches of ", from.shape,
                       ", received ", x.shape(),
                       "; pass the size, strides and padding of extract_patches()");
    }
    const Tensor total = internal::scatter_flat(x, from.positions, image);
    return ops::divide_no_nan(total,
                              internal::scatter_flat(ops::ones_like(x), from.positions, image));
  });
}

// ---- Filters.

Tensor gaussian_blur(const Tensor& images, Pair kernel_size, std::pair<double, double> sigma,
                     const std::string& data_format) {
  return on_batch("gaussian_blur", images, data_format, [&](const Tensor& x) {
    // Keras applies the first number of both arguments to the columns.
    const Tensor rows = filtered(floating(x), 1, gaussian(kernel_size.width, sigma.second));
    return filtered(rows, 2, gaussian(kernel_size.height, sigma.first));
  });
}

Tensor sobel_edges(const Tensor& images, const std::string& data_format) {
  const Numbers smooth = {1, 2, 1}, difference = {-1, 0, 1};
  const auto derivative = [&](int across, int along) {
    return on_batch("sobel_edges", images, data_format, [&](const Tensor& x) {
      return filtered(filtered(floating(x), across, difference), along, smooth);
    });
  };
  return ops::stack({derivative(1, 2), derivative(2, 1)}, -1);
}

Tensor ssim(const Tensor& image1, const Tensor& image2, double max_val, int64_t filter_size,
            double filter_sigma, double k1, double k2, const std::string& data_format) {
  const auto [first, second] = internal::promoted_floating(image1, image2);
  const int height = data_format == "channels_first" ? -2 : -3;
  const Numbers taps = gaussian(filter_size, filter_sigma);
  const auto local_mean = [&](const Tensor& x) {
    Tensor out = x;
    for (const int axis : {height, height + 1}) {
      const int64_t outputs = x.dim(axis) - filter_size + 1;
      if (outputs < 1)
        throw ValueError("ssim: images must be as large as the filter, ", filter_size);
      out = filtered(out, x.shape().normalize_axis(axis), taps, 0, outputs);
    }
    return out;
  };
  const double c1 = k1 * max_val * k1 * max_val, c2 = k2 * max_val * k2 * max_val;
  const Tensor m1 = local_mean(first), m2 = local_mean(second);
  const Tensor v1 = local_mean(ops::square(first)) - ops::square(m1);
  const Tensor v2 = local_mean(ops::square(second)) - ops::square(m2);
  const Tensor covariance = local_mean(first * second) - m1 * m2;
  const Tensor above = (m1 * m2 * 2.0 + c1) * (covariance * 2.0 + c2);
  const Tensor below = (ops::square(m1) + ops::square(m2) + c1) * (v1 + v2 + c2);
  return ops::mean(above / below, {-3, -2, -1});
}

// ---- Geometric transformations.

Tensor map_coordinates(const Tensor& inputs, const Tensor& coordinates, int order,
                       const std::string& fill_mode, double fill_value) {
  const int rank = inputs.rank();
  if (coordinates.rank() < 1 || coordinates.dim(0) != rank || (order != 0 && order != 1)) {
    throw ValueError("map_coordinates: requires order 0 or 1 and ", rank,
                     " coordinates in the first axis, received order ", order, " and shape ",
                     coordinates.shape());
  }
  // Positions beyond are not exact.
  constexpr double kFarthest = 1e15;
  const internal::FillMode mode = internal::fill_mode_of(fill_mode);
  const Shape shape = coordinates.shape().slice(1, coordinates.rank());
  const int64_t n = shape.size();
  if (inputs.size() == 0 && n > 0 && mode != internal::FillMode::kConstant) {
    throw ValueError("map_coordinates: inputs of shape ", inputs.shape(),
                     " have no elements for fill_mode '", fill_mode, "'; use 'constant'");
  }
  const Numbers at = internal::doubles_of(coordinates);
  const Sizes strides = internal::strides_of(inputs.shape());
  const Tensor x = floating(inputs);
  // The distances from the position below, which carry the gradient of the coordinates.
  std::vector<Tensor> distance;
  for (int axis = 0; axis < rank && order == 1; ++axis) {
    const Tensor own = ops::reshape(ops::slice(floating(coordinates), 0, axis, 1), shape);
    distance.push_back(ops::cast(own - ops::floor(own), x.dtype()));
  }
  Tensor out;
  for (int corner = 0; corner < (order == 0 ? 1 : 1 << rank); ++corner) {
    Sizes positions(n, 0);
    Tensor weight = Tensor::full<double>({}, 1).cast(x.dtype());
    for (int axis = 0; axis < rank; ++axis) {
      const int upper = corner >> axis & 1;
      for (int64_t i = 0; i < n; ++i) {
        const double given = at[axis * n + i];
        const double c = std::isnan(given) ? -kFarthest : std::clamp(given, -kFarthest, kFarthest);
        const double whole = order == 0 ? std::floor(c + 0.5) : std::floor(c) + upper;
        const int64_t p =
            internal::position_at(static_cast<int64_t>(whole), inputs.dim(axis), mode);
        if (p == kFill) positions[i] = kFill;
        if (positions[i] != kFill) positions[i] += p * strides[axis];
      }
      if (order == 1) weight = weight * (upper == 1 ? distance[axis] : -distance[axis] + 1.0);
    }
    const Tensor part = internal::take_flat(x, positions, shape, fill_value) * weight;
    out = out ? out + part : part;
  }
  return in_dtype_of(inputs, out);
}

Tensor affine_transform(const Tensor& images, const Tensor& transform,
                        const std::string& interpolation, const std::string& fill_mode,
                        double fill_value, const std::string& data_format) {
  return on_batch("affine_transform", images, data_format, [&](const Tensor& x) {
    const auto transforms = for_each_image("affine_transform", transform, x.dim(0));
    const auto at = [&](int64_t b, int64_t column, int64_t row) {
      const auto px = static_cast<double>(column), py = static_cast<double>(row);
      const Numbers& t = transforms[b];
      return std::pair(t[0] * px + t[1] * py + t[2], t[3] * px + t[4] * py + t[5]);
    };
    return in_dtype_of(
        x, internal::pixels_moved(floating(x), at, {interpolation, fill_mode, fill_value}));
  });
}

Tensor perspective_transform(const Tensor& images, const Tensor& start_points,
                             const Tensor& end_points, const std::string& interpolation,
                             double fill_value, const std::string& data_format) {
  return on_batch("perspective_transform", images, data_format, [&](const Tensor& x) {
    const auto start = for_each_image("perspective_transform", start_points, x.dim(0));
    const auto end = for_each_image("perspective_transform", end_points, x.dim(0));
    std::vector<Numbers> maps;
    for (size_t b = 0; b < start.size(); ++b) {
      maps.push_back(homography(start[b].data(), end[b].data()));
    }
    const auto at = [&](int64_t b, int64_t column, int64_t row) {
      const auto px = static_cast<double>(column), py = static_cast<double>(row);
      const Numbers& t = maps[b];
      const double scale = t[6] * px + t[7] * py + 1;
      return std::pair((t[0] * px + t[1] * py + t[2]) / scale,
                       (t[3] * px + t[4] * py + t[5]) / scale);
    };
    return in_dtype_of(
        x, internal::pixels_moved(floating(x), at, {interpolation, "constant", fill_value}));
  });
}

Tensor elastic_transform(const Tensor& images, const ElasticOptions& options) {
  const RandomStream stream = next_random_stream(options.seed);
  return on_batch("elastic_transform", images, options.data_format, [&](const Tensor& in) {
    const Tensor x = floating(in);
    const auto noise = [&](uint64_t lane) {
      Tensor out = Tensor::uninitialized(x.shape().with(3, 1), DType::kFloat32);
      stream.at_lane(lane).normal(out.mutable_data<float>(), 0, 0, 1);
      return ops::cast(out, x.dtype());
    };
    const Tensor out =
        internal::elastically_moved(x, noise(0), noise(1), options.alpha, options.sigma,
                                    {options.interpolation, options.fill_mode, options.fill_value});
    return in_dtype_of(in, out);
  });
}

}  // namespace keel::keras_ops::image
