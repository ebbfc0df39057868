#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numbers>

#include <keel/autodiff/operation.h>
#include <keel/autodiff/ops/ops_internal.h>
#include <keel/autodiff/spatial_ops.h>
#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/convolution/axis_map.h>

namespace keel {
namespace {

using kernels::AxisMap;

// The weight of a position at a distance, and the distance from which it is zero.
struct InterpolationFilter {
  double (*weight)(double distance);
  double radius;
};

double triangle(double x) { return std::max(0.0, 1 - x); }

double keys_cubic(double x) {
  if (x >= 2) return 0;
  if (x >= 1) return ((-0.5 * x + 2.5) * x - 4) * x + 2;
  return (1.5 * x - 2.5) * x * x + 1;
}

template <int kRadius>
double lanczos(double x) {
  if (x >= kRadius) return 0;
  if (x < 1e-3) return 1;  // the limit at 0
  constexpr double kPi = std::numbers::pi;
  return kRadius * math::sin(kPi * x) * math::sin(kPi * x / kRadius) / (kPi * kPi * x * x);
}

InterpolationFilter filter_of(const std::string& interpolation) {
  if (interpolation == "bilinear") return {triangle, 1};
  if (interpolation == "bicubic") return {keys_cubic, 2};
  if (interpolation == "lanczos3") return {lanczos<3>, 3};
  if (interpolation == "lanczos5") return {lanczos<5>, 5};
  throw ValueError("resize_axis: interpolation must be nearest, bilinear, bicubic, lanczos3 or ",
                   "lanczos5, received '", interpolation, "'");
}

AxisMap interpolated(int64_t from, int64_t to, const std::string& interpolation) {
  AxisMap out = {.columns = from};
  const double scale = static_cast<double>(from) / static_cast<double>(to);
  if (interpolation == "nearest") {
    for (int64_t i = 0; i < to; ++i)
      out.add_row({{.column = (2 * i + 1) * from / (2 * to), .weight = 1}});
    return out;
  }
  const InterpolationFilter filter = filter_of(interpolation);
  for (int64_t i = 0; i < to; ++i) {
    const double center = (static_cast<double>(i) + 0.5) * scale - 0.5;
    const auto first = static_cast<int64_t>(std::ceil(center - filter.radius));
    const auto last = static_cast<int64_t>(std::floor(center + filter.radius));
    std::vector<AxisMap::Element> row;
    double sum = 0;
    for (int64_t at = std::max<int64_t>(first, 0); at <= std::min(last, from - 1); ++at) {
      const double weight = filter.weight(std::abs(center - static_cast<double>(at)));
      if (weight == 0) continue;
      row.push_back({.column = at, .weight = weight});
      sum += weight;
    }
    for (AxisMap::Element& element : row) element.weight /= sum;
    out.add_row(row);
  }
  return out;
}

// Applies a sparse matrix along an axis. The gradient applies the transposed matrix.
class MapAxis final : public Op {
 public:
  using Map = std::shared_ptr<const AxisMap>;
  MapAxis(int axis, Map map, Map transposed)
      : Op("MapAxis"), axis_(axis), map_(std::move(map)), transposed_(std::move(transposed)) {}

  std::vector<TensorSpec> infer(std::span<const TensorSpec> in) const override {
    ops::internal::check_floating("resize_axis", in[0]);
    return {{.shape = in[0].shape.with(axis_, map_->rows()), .dtype = in[0].dtype}};
  }
  std::vector<Tensor> compute(std::span<const Tensor> in) const override {
    const Shape& x = in[0].shape();
    Tensor y = Tensor::uninitialized(x.with(axis_, map_->rows()), in[0].dtype());
    visit_floating(y.dtype(), "resize_axis", [&]<class T>(const T&) {
      kernels::map_axis(*map_, x.slice(0, axis_).size(), x.slice(axis_ + 1, x.rank()).size(),
                        in[0].data<T>().data(), y.mutable_data<T>().data());
    });
    return {y};
  }
  std::vector<Gradient> vjp(const VjpArgs& args) const override {
    return {dispatch1(MapAxis(axis_, transposed_, map_), {args.output_gradients[0].dense()})};
  }
  Retain retain() const override { return {.inputs = 0, .outputs = 0}; }

 private:
  const int axis_;
  const Map map_, transposed_;
};

}  // namespace

Tensor ops::resize_axis(const Tensor& x, int axis, int64_t size, const std::string& interpolation) {
  const int at = x.shape().normalize_axis(axis);
  if (x.dim(at) == kUnknown || x.dim(at) == 0 || size <= 0) {
    throw ValueError("resize_axis: the axis must have a known size, and both sizes must be ",
                     "positive, received shape ", x.shape(), ", axis ", axis, " and size ", size);
  }
  AxisMap map = interpolated(x.dim(at), size, interpolation);
  AxisMap transposed = map.transposed();
  return dispatch1(MapAxis(at, std::make_shared<const AxisMap>(std::move(map)),
                           std::make_shared<const AxisMap>(std::move(transposed))),
                   {x});
}

}  // namespace keel
