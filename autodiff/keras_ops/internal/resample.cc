#include <keel/autodiff/keras_ops/internal/resample.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <keel/autodiff/keras_ops/image.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/base/parallel.h>

namespace keel::keras_ops::internal {
namespace {

constexpr int64_t kPixelsPerBlock = 4096;

// A sum of weighted pixels for each pixel of the result.
struct PixelSums {
  Shape shape;                          // [batch, height, width, channels]
  int64_t terms = 1;                    // of each sum
  std::vector<int64_t> positions = {};  // of the pixels in their image, or kFill
  std::vector<double> weights = {};     // one for each position
  double fill = 0;                      // value of kFill

  int64_t pixels() const { return shape[1] * shape[2]; }
};

// Calls fn(first term, image, pixel) for the pixels of all results.
template <class Fn>
void for_each_pixel(const PixelSums& sums, const Fn& fn) {
  const int64_t pixels = sums.pixels();
  parallel_for(sums.shape[0] * pixels, kPixelsPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) fn(i * sums.terms, i / pixels, i % pixels);
  });
}

template <class T>
void add_up(const PixelSums& sums, const T* x, T* y, double fill) {
  const int64_t channels = sums.shape[3], pixels = sums.pixels();
  for_each_pixel(sums, [&](int64_t first, int64_t image, int64_t pixel) {
    for (int64_t c = 0; c < channels; ++c) {
      double total = 0;
      for (int64_t k = first; k < first + sums.terms; ++k) {
        const int64_t p = sums.positions[k];
        const double value =
            p == kFill ? fill : static_cast<double>(x[(image * pixels + p) * channels + c]);
        total += sums.weights[k] * value;
      }
      y[(image * pixels + pixel) * channels + c] = static_cast<T>(total);
    }
  });
}

// The transpose of add_up(). Each image is summed by one thread, so that the order is fixed.
template <class T>
void distribute(const PixelSums& sums, const T* dy, T* dx) {
  const int64_t channels = sums.shape[3], pixels = sums.pixels();
  parallel_for(sums.shape[0], 1, [&](int64_t begin, int64_t end) {
    std::vector<double> total(pixels * channels);
    for (int64_t image = begin; image < end; ++image) {
      std::ranges::fill(total, 0.0);
      const int64_t start = image * pixels;
      for (int64_t k = start * sums.terms; k < (start + pixels) * sums.terms; ++k) {
        const int64_t p = sums.positions[k];
        if (p == kFill) continue;
        const T* from = dy + k / sums.terms * channels;
        for (int64_t c = 0; c < channels; ++c) {
          total[p * channels + c] += sums.weights[k] * static_cast<double>(from[c]);
        }
      }
      std::ranges::transform(total, dx + start * channels,
                             [](double v) { return static_cast<T>(v); });
    }
  });
}

Tensor summed(const Tensor& x, const std::shared_ptr<const PixelSums>& sums, double fill,
              bool transposed) {
  FunctionOp op = {.name = transposed ? "resample_gradient" : "resample", .outputs = {x.spec()}};
  op.compute = [=](std::span<const Tensor> in) {
    Tensor y = Tensor::uninitialized(in[0].shape(), in[0].dtype());
    visit_floating(y.dtype(), "resample", [&]<class T>(const T&) {
      const T* from = in[0].data<T>().data();
      T* to = y.mutable_data<T>().data();
      if (transposed) {
        distribute(*sums, from, to);
      } else {
        add_up(*sums, from, to, fill);
      }
    });
    return std::vector<Tensor>{y};
  };
  op.vjp = [=](const VjpArgs& args) {
    return std::vector<Gradient>{summed(args.output_gradients[0].dense(), sums, 0, !transposed)};
  };
  return call1(std::move(op), {x});
}

// One position on an axis and its weight.
struct AxisTerm {
  int64_t position;
  double weight;
};

// Writes the one or two positions on an axis of n elements at a coordinate.
void axis_terms(double at, int64_t n, bool nearest, FillMode mode, AxisTerm* out) {
  // Coordinates so far away occur next to the horizon of a perspective.
  if (!(std::abs(at) < 1e9)) at = -1e9;
  if (nearest) {
    out[0] = {position_at(static_cast<int64_t>(std::floor(at + 0.5)), n, mode), 1};
    return;
  }
  const double below = std::floor(at);
  const auto first = static_cast<int64_t>(below);
  out[0] = {position_at(first, n, mode), 1 - (at - below)};
  out[1] = {position_at(first + 1, n, mode), at - below};
}

}  // namespace

FillMode fill_mode_of(const std::string& name) {
  if (name == "constant") return FillMode::kConstant;
  if (name == "nearest") return FillMode::kNearest;
  if (name == "wrap") return FillMode::kWrap;
  if (name == "mirror") return FillMode::kMirror;
  if (name == "reflect") return FillMode::kReflect;
  throw ValueError(
      "map_coordinates: fill_mode must be constant, nearest, wrap, mirror or reflect, ",
      "received '", name, "'");
}

int64_t position_at(int64_t i, int64_t n, FillMode mode) {
  if (i >= 0 && i < n) return i;
  if (n <= 0) return kFill;
  const auto wrapped = [i](int64_t period) { return ((i % period) + period) % period; };
  switch (mode) {
    case FillMode::kConstant:
      return kFill;
    case FillMode::kNearest:
      return std::clamp<int64_t>(i, 0, n - 1);
    case FillMode::kWrap:
      return wrapped(n);
    case FillMode::kMirror: {
      if (n == 1) return 0;
      const int64_t at = wrapped(2 * (n - 1));
      return at < n ? at : 2 * (n - 1) - at;
    }
    default: {
      const int64_t at = wrapped(2 * n);
      return at < n ? at : 2 * n - 1 - at;
    }
  }
}

Tensor pixels_moved(const Tensor& images, PixelMap map, const Resampling& how) {
  const bool nearest = how.interpolation == "nearest";
  if (!nearest && how.interpolation != "bilinear") {
    throw ValueError("keras_ops: interpolation must be nearest or bilinear, received '",
                     how.interpolation, "'");
  }
  const FillMode mode = fill_mode_of(how.fill_mode);
  PixelSums sums = {.shape = images.shape(), .terms = nearest ? 1 : 4, .fill = how.fill_value};
  if (images.size() == 0) return images;
  const int64_t height = images.dim(1), width = images.dim(2), per_axis = nearest ? 1 : 2;
  sums.positions.resize(images.dim(0) * sums.pixels() * sums.terms);
  sums.weights.resize(sums.positions.size());
  for_each_pixel(sums, [&](int64_t first, int64_t image, int64_t pixel) {
    const auto [x, y] = map(image, pixel % width, pixel / width);
    AxisTerm rows[2], columns[2];
    axis_terms(y, height, nearest, mode, rows);
    axis_terms(x, width, nearest, mode, columns);
    for (int64_t r = 0; r < per_axis; ++r) {
      for (int64_t c = 0; c < per_axis; ++c) {
        const bool outside = rows[r].position == kFill || columns[c].position == kFill;
        const int64_t k = first + r * per_axis + c;
        sums.positions[k] = outside ? kFill : rows[r].position * width + columns[c].position;
        sums.weights[k] = rows[r].weight * columns[c].weight;
      }
    }
  });
  const double fill = sums.fill;
  return summed(images, std::make_shared<const PixelSums>(std::move(sums)), fill, false);
}

Tensor elastically_moved(const Tensor& images, const Tensor& noise_x, const Tensor& noise_y,
                         double alpha, double sigma, const Resampling& how) {
  if (!(sigma > 0) || alpha == 0) return images;
  constexpr double kWidest = 10000;  // a kernel of 6 sigma must fit into memory
  if (sigma > kWidest) {
    throw ValueError("elastic_transform: sigma must be at most ", kWidest, ", received ", sigma);
  }
  const int64_t size = static_cast<int64_t>(6 * sigma) | 1;
  const auto shifts = [&](const Tensor& noise) {
    const Tensor smooth = image::gaussian_blur(noise * sigma, size, {sigma, sigma});
    return doubles_of(smooth * alpha);
  };
  const std::vector<double> right = shifts(noise_x), down = shifts(noise_y);
  const int64_t height = images.dim(1), width = images.dim(2);
  const auto map = [&](int64_t image, int64_t x, int64_t y) {
    const int64_t i = (image * height + y) * width + x;
    return std::pair(static_cast<double>(x) + right[i], static_cast<double>(y) + down[i]);
  };
  return pixels_moved(images, map, how);
}

}  // namespace keel::keras_ops::internal
