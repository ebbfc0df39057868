#include <keel/savedmodel/tool/difference.h>

#include <absl/strings/str_cat.h>
#include <cmath>
#include <limits>

namespace keel::tool {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

std::string place(const Shape& shape, int64_t flat) {
  std::string out;
  for (int axis = shape.rank() - 1; axis >= 0; --axis) {
    out = absl::StrCat(flat % shape[axis], out.empty() ? "" : ", ", out);
    flat /= shape[axis];
  }
  return absl::StrCat("[", out, "]");
}

// Compares distance(i) with allowed(i) for each element i.
template <class Distance, class Allowed>
Difference summed(const Shape& shape, const Distance& distance, const Allowed& allowed) {
  Difference out;
  int64_t worst = -1;
  for (int64_t i = 0; i < shape.size(); ++i) {
    const double d = distance(i);
    out.count += !(d <= allowed(i));
    if (d > out.largest) {
      out.largest = d;
      worst = i;
    }
  }
  if (worst >= 0) out.at = place(shape, worst);
  return out;
}

double distance_of(double a, double b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  const double d = std::abs(a - b);
  return std::isnan(d) ? kInfinity : d;
}

std::string integers_difference(const char* what, const Tensor& a, const Tensor& b) {
  if (a.shape() != b.shape()) return str(what, ' ', a.shape(), ", expected ", b.shape());
  const Difference found = difference(a, b, 0);
  if (found.count == 0) return "";
  return absl::StrCat(what, " that differ by up to ", found.largest, " at ", found.at);
}

}  // namespace

std::string structure_difference(const TensorLike& a, const TensorLike& b) {
  if (a.layout() != b.layout()) {
    constexpr const char* kLayouts[] = {"dense", "ragged", "sparse"};
    return absl::StrCat(kLayouts[static_cast<size_t>(a.layout())], ", expected ",
                        kLayouts[static_cast<size_t>(b.layout())]);
  }
  if (a.layout() == Layout::kRagged) {
    return integers_difference("row_splits", a.ragged().row_splits, b.ragged().row_splits);
  }
  if (a.layout() == Layout::kDense) return "";
  const SparseTensor &x = a.sparse(), &y = b.sparse();
  if (x.dense_shape != y.dense_shape) {
    return str("dense_shape ", x.dense_shape, ", expected ", y.dense_shape);
  }
  return integers_difference("indices", x.indices, y.indices);
}

Difference difference(const Tensor& a, const Tensor& b, double atol, double rtol) {
  if ((a.dtype() == DType::kString) != (b.dtype() == DType::kString)) {
    throw TypeError("difference: requires two tensors of numbers or of strings, received ",
                    a.dtype(), " and ", b.dtype());
  }
  if (a.dtype() == DType::kString) {
    const auto x = a.data<std::string>(), y = b.data<std::string>();
    return summed(
        a.shape(), [&](int64_t i) { return x[i] == y[i] ? 0 : kInfinity; },
        [](int64_t) { return 0.0; });
  }
  if (a.dtype() == DType::kInt64 && b.dtype() == DType::kInt64) {
    // Not every int64 is representable as a double.
    const auto x = a.data<int64_t>(), y = b.data<int64_t>();
    return summed(
        a.shape(),
        [&](int64_t i) {
          const auto [low, high] = std::minmax(x[i], y[i]);
          return static_cast<double>(static_cast<uint64_t>(high) - static_cast<uint64_t>(low));
        },
        [&](int64_t i) { return atol + rtol * std::abs(static_cast<double>(y[i])); });
  }
  const Tensor wide_a = a.cast(DType::kFloat64), wide_b = b.cast(DType::kFloat64);
  const auto x = wide_a.data<double>(), y = wide_b.data<double>();
  return summed(
      a.shape(), [&](int64_t i) { return distance_of(x[i], y[i]); },
      [&](int64_t i) {
        const double allowed = atol + rtol * std::abs(y[i]);
        return std::isnan(allowed) ? atol : allowed;
      });
}

}  // namespace keel::tool
