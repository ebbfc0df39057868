#include <keel/framework/kernels/convolution/pooling.h>

#include <optional>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/autodiff/spatial_ops.h>

namespace keel {
namespace {

using kernels::PoolingWindows;
using ops::PoolingRanges;

// Checks that the ranges lie in x and returns the shape of the result.
Shape pooled_shape(const char* caller, const Shape& x, const PoolingRanges& ranges) {
  const int axes = static_cast<int>(ranges.size());
  if (axes < 1 || axes > 3 || x.rank() != axes + 2) {
    throw ValueError(caller,
                     ": requires ranges for 1 to 3 spatial axes and an input with two more axes, "
                     "received ranges for ",
                     axes, " and shape ", x);
  }
  Shape out = x;
  for (int i = 0; i < axes; ++i) {
    for (const ops::PoolingRange& range : ranges[i]) {
      const bool inside = range.begin >= 0 && range.begin < range.end &&
                          (x[i + 1] == kUnknown || range.end <= x[i + 1]);
      if (inside) continue;
      throw ValueError(caller, ": the range [", range.begin, ", ", range.end, ") of spatial axis ",
                       i, " is empty or outside an input of shape ", x,
                       "; pass ranges within the input");
    }
    out = out.with(i + 1, std::ssize(ranges[i]));
  }
  return out;
}

PoolingWindows pooling_windows(const Shape& x, const PoolingRanges& ranges) {
  PoolingWindows out = {.batch = x[0], .channels = x[-1]};
  const size_t first = 3 - ranges.size();
  for (size_t i = 0; i < ranges.size(); ++i) {
    out.input[first + i] = x[static_cast<int>(i) + 1];
    out.ranges[first + i].clear();
    for (const ops::PoolingRange& range : ranges[i]) {
      out.ranges[first + i].push_back({.begin = range.begin, .end = range.end});
    }
  }
  return out;
}

// Returns the positions of the maxima, int32.
class ArgmaxPool final : public Op {
 public:
  explicit ArgmaxPool(PoolingRanges ranges) : Op("ArgmaxPool"), ranges_(std::move(ranges)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = pooled_shape("max_pool", in[0].shape, ranges_), .dtype = DType::kInt32}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor out =
        Tensor::uninitialized(pooled_shape("max_pool", in[0].shape(), ranges_), DType::kInt32);
    visit_floating(in[0].dtype(), "max_pool", [&]<class T>(const T&) {
      kernels::argmax_pool(pooling_windows(in[0].shape(), ranges_), in[0].data<T>().data(),
                           out.mutable_data<int32_t>().data());
    });
    return {out};
  }
  bool differentiable() const override { return false; }

 private:
  const PoolingRanges ranges_;
};

// The inputs are a tensor and positions in images of shape `x`. Selects the elements at the
// positions or, if `scatters`, adds the elements to the positions of zeros; each is the gradient of
// the other.
class PixelSelection final : public Op {
 public:
  PixelSelection(PoolingRanges ranges, const Shape& x, bool scatters)
      : Op(scatters ? "ScatterPixels" : "SelectPixels"),
        ranges_(std::move(ranges)),
        x_(x),
        scatters_(scatters) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    return {{.shape = scatters_ ? x_ : in[1].shape, .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor out = Tensor::uninitialized(scatters_ ? x_ : in[1].shape(), in[0].dtype());
    const PoolingWindows windows = pooling_windows(x_, ranges_);
    const int32_t* pixels = in[1].data<int32_t>().data();
    visit_floating(out.dtype(), "max_pool", [&]<class T>(const T&) {
      const T* from = in[0].data<T>().data();
      T* to = out.mutable_data<T>().data();
      if (scatters_) {
        kernels::scatter_pixels(windows, from, pixels, to);
      } else {
        kernels::select_pixels(windows, from, pixels, to);
      }
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {dispatch1(PixelSelection(ranges_, x_, !scatters_),
                      {args.output_gradients[0].dense(), args.inputs[1]}),
            Gradient()};
  }
  Retain retain() const override { return {.inputs = 2, .outputs = 0}; }

 private:
  const PoolingRanges ranges_;
  const Shape x_;
  const bool scatters_;
};

class MaxPool final : public Op {
 public:
  explicit MaxPool(PoolingRanges ranges) : Op("MaxPool"), ranges_(std::move(ranges)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating("max_pool", in[0]);
    return {{.shape = pooled_shape("max_pool", in[0].shape, ranges_), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor y =
        Tensor::uninitialized(pooled_shape("max_pool", in[0].shape(), ranges_), in[0].dtype());
    visit_floating(y.dtype(), "max_pool", [&]<class T>(const T&) {
      kernels::max_pool(pooling_windows(in[0].shape(), ranges_), in[0].data<T>().data(),
                        y.mutable_data<T>().data());
    });
    return {y};
  }
  // The positions are found only here, so that inference does not need them.
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    const Tensor positions = dispatch1(ArgmaxPool(ranges_), {args.inputs[0]});
    return {dispatch1(PixelSelection(ranges_, args.input_specs[0].shape, true),
                      {args.output_gradients[0].dense(), positions})};
  }
  Retain retain() const override { return {.inputs = 1, .outputs = 0}; }

 private:
  const PoolingRanges ranges_;
};

// Averages the windows of images or, if the shape of the images is given, spreads the elements of a
// tensor evenly over their windows. Each is the gradient of the other.
class AveragePool final : public Op {
 public:
  explicit AveragePool(PoolingRanges ranges, std::optional<Shape> images = {})
      : Op(images ? "AveragePoolTransposed" : "AveragePool"),
        ranges_(std::move(ranges)),
        images_(std::move(images)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating("average_pool", in[0]);
    return {{.shape = result_shape(in[0].shape), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    Tensor out = Tensor::uninitialized(result_shape(in[0].shape()), in[0].dtype());
    visit_floating(out.dtype(), "average_pool", [&]<class T>(const T&) {
      const T* from = in[0].data<T>().data();
      T* to = out.mutable_data<T>().data();
      if (images_) {
        kernels::average_pool_transposed(pooling_windows(*images_, ranges_), from, to);
      } else {
        kernels::average_pool(pooling_windows(in[0].shape(), ranges_), from, to);
      }
    });
    return {out};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    std::optional<Shape> images;
    if (!images_) images = args.input_specs[0].shape;
    return {dispatch1(AveragePool(ranges_, images), {args.output_gradients[0].dense()})};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  Shape result_shape(const Shape& x) const {
    return images_ ? *images_ : pooled_shape("average_pool", x, ranges_);
  }

  const PoolingRanges ranges_;
  const std::optional<Shape> images_;
};

}  // namespace

Tensor ops::max_pool(const Tensor& x, const PoolingRanges& ranges) {
  return dispatch1(MaxPool(ranges), {x});
}

Tensor ops::average_pool(const Tensor& x, const PoolingRanges& ranges) {
  return dispatch1(AveragePool(ranges), {x});
}

}  // namespace keel
