#include <keel/autodiff/keras_ops/reductions.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/ops.h>

namespace keel::keras_ops {
namespace {

using internal::countable;
using internal::floating;

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

using CoreReduction = Tensor (*)(const Tensor&, const std::vector<int>&, bool);

// The functions of keel::ops reduce all axes of an empty list, which for keras_ops are none.
Tensor reduce(CoreReduction core, const Tensor& x, const Axes& axis, bool keepdims) {
  const std::vector<int> axes = axis.of(x.rank());
  return axes.empty() ? x : core(x, axes, keepdims);
}

Tensor extremum(CoreReduction core, Tensor (*choose)(const Operand&, const Operand&),
                const Tensor& x, const Axes& axis, bool keepdims, std::optional<double> initial) {
  if (x.dtype() == DType::kBool) {
    return ops::cast(reduce(core, countable(x), axis, keepdims), DType::kBool);
  }
  const Tensor out = reduce(core, x, axis, keepdims);
  if (!initial) return out;
  return choose(out, Tensor::scalar(*initial).cast(x.dtype()));
}

// Multiplies the elements of the last axis in a tree, whose gradient is right for zeros too.
Tensor product_of_last(Tensor x) {
  const auto one = [&] { return ops::ones_like(ops::slice(x, -1, 0, 1)); };
  if (x.dim(-1) == 0) x = Tensor::full<double>(x.shape().with(-1, 1), 1).cast(x.dtype());
  while (x.dim(-1) > 1) {
    if (x.dim(-1) % 2 == 1) x = ops::concat({x, one()}, -1);
    const int64_t half = x.dim(-1) / 2;
    x = ops::slice(x, -1, 0, half) * ops::slice(x, -1, half, half);
  }
  return ops::squeeze(x, -1);
}

// Joins each element along the axis with those before it, in log2(n) passes.
Tensor running(Tensor (*join)(const Tensor&, const Tensor&), double neutral, Tensor x, Axis axis,
               std::optional<DType> dtype) {
  x = dtype ? ops::cast(x, *dtype) : countable(x);
  if (!axis) x = ops::reshape(x, {x.shape().size()});
  const int along = axis.value_or(0);
  const int64_t n = x.dim(along);
  for (int64_t step = 1; step < n; step *= 2) {
    const Tensor before =
        Tensor::full<double>(x.shape().with(along, step), neutral).cast(x.dtype());
    x = join(x, ops::concat({before, ops::slice(x, along, 0, n - step)}, along));
  }
  return x;
}

Tensor without_nan(const Tensor& x, double replacement) {
  if (!is_floating(x.dtype())) return x;
  return ops::where(ops::is_nan(x), Tensor::scalar(replacement).cast(x.dtype()), x);
}

// The number of elements that are not NaN.
Tensor valid_count(const Tensor& x, const Axes& axis, bool keepdims) {
  const Tensor valid = ops::logical_not(isnan(x));
  return sum(ops::cast(valid, floating(x).dtype()), axis, keepdims);
}

Tensor all_nan(const Tensor& x, const Axes& axis, bool keepdims) {
  return all(isnan(x), axis, keepdims);
}

Tensor nan_extremum(const Tensor& x, const Axes& axis, bool keepdims, double replacement,
                    Tensor (*extremum_of)(const Tensor&, const Axes&, bool,
                                          std::optional<double>)) {
  if (!is_floating(x.dtype())) return extremum_of(x, axis, keepdims, {});
  const Tensor out = extremum_of(without_nan(x, replacement), axis, keepdims, {});
  const Tensor nan = Tensor::scalar(kNan).cast(x.dtype());
  return ops::where(all_nan(x, axis, keepdims), nan, out);
}

Tensor nan_argument(const Tensor& x, Axis axis, bool keepdims, double replacement,
                    Tensor (*argument)(const Tensor&, Axis, bool)) {
  const Axes axes = axis ? Axes(*axis) : Axes();
  const Tensor out = argument(without_nan(x, replacement), axis, keepdims);
  return ops::where(all_nan(x, axes, keepdims), Tensor::full<int32_t>({}, -1), out);
}

// Returns the position between 0 and n - 1 of a quantile, as Keras rounds it for a method.
double position_of(double q, int64_t n, const std::string& method) {
  const double at = q * static_cast<double>(n - 1);
  if (method == "linear") return at;
  if (method == "lower") return std::floor(at);
  if (method == "higher") return std::ceil(at);
  if (method == "midpoint") return 0.5 * (std::floor(at) + std::ceil(at));
  if (method == "nearest") return std::nearbyint(at);
  throw ValueError("quantile: unknown method '", method,
                   "'; use linear, lower, higher, midpoint or nearest");
}

std::vector<double> fractions_of(const Operand& q) {
  std::vector<double> out = internal::doubles_of(q.tensor());
  for (const double value : out) {
    if (!(value >= 0 && value <= 1)) {
      throw ValueError("quantile: q must be in [0, 1] (percentile: [0, 100]), received ", value);
    }
  }
  return out;
}

// Positions of the two neighbors of a quantile in a flat [rows, n] tensor, and their weights.
struct Neighbors {
  std::vector<int64_t> lower, upper;
  std::vector<double> weight;  // weight of the upper neighbor
};

Neighbors neighbors_of(const std::vector<double>& values, int64_t n,
                       const std::vector<double>& fractions, const std::string& method,
                       bool ignores_nan) {
  const int64_t rows = n == 0 ? 0 : static_cast<int64_t>(values.size()) / n;
  std::vector<std::vector<int64_t>> order(rows);
  std::vector<int64_t> valid(rows, n);
  for (int64_t r = 0; r < rows; ++r) {
    const double* row = values.data() + r * n;
    for (int64_t i = 0; i < n; ++i) order[r].push_back(r * n + i);
    const auto before = [&](int64_t a, int64_t b) {
      const double p = values[a], q = values[b];
      return p < q || (q != q && p == p);  // NaN last
    };
    std::ranges::stable_sort(order[r], before);
    const auto nans = std::count_if(row, row + n, [](double v) { return v != v; });
    if (nans > 0 && ignores_nan) valid[r] = n - nans;
    // One NaN makes the result NaN: both neighbors are the last element.
    if (nans > 0 && (!ignores_nan || nans == n))
      std::ranges::fill(order[r], int64_t{order[r].back()});
    valid[r] = std::max<int64_t>(valid[r], 1);
  }
  Neighbors out;
  for (const double q : fractions) {
    for (int64_t r = 0; r < rows; ++r) {
      const double at = position_of(q, valid[r], method);
      const auto low = static_cast<int64_t>(at);
      out.lower.push_back(order[r][low]);
      out.upper.push_back(order[r][std::min(low + 1, valid[r] - 1)]);
      out.weight.push_back(at - static_cast<double>(low));
    }
  }
  return out;
}

Tensor quantiles(const Tensor& values, const Operand& q, const Axes& axis,
                 const std::string& method, bool keepdims, bool ignores_nan) {
  const Tensor x = floating(values);
  const std::vector<int> axes = axis.of(x.rank());
  const Tensor rows = internal::flatten_axes(x, axes);
  if (rows.dim(-1) == 0) throw ValueError("quantile: requires at least one element");
  const Shape shape = q.tensor().shape() + internal::reduced(x.shape(), axes, keepdims);
  const Neighbors at =
      neighbors_of(internal::doubles_of(rows), rows.dim(-1), fractions_of(q), method, ignores_nan);
  const Tensor low = internal::take_flat(rows, at.lower, shape);
  const Tensor high = internal::take_flat(rows, at.upper, shape);
  const Tensor weight = Tensor::from(at.weight, shape).cast(x.dtype());
  return low + (high - low) * weight;
}

Operand fraction_of(const Operand& percent) {
  return floating(percent.tensor().cast(DType::kFloat64)) / 100.0;
}

}  // namespace

// ---- Sums and moments.

Tensor sum(const Tensor& x, const Axes& axis, bool keepdims) {
  return reduce(ops::sum, countable(x), axis, keepdims);
}
Tensor mean(const Tensor& x, const Axes& axis, bool keepdims) {
  return reduce(ops::mean, floating(x), axis, keepdims);
}
Tensor prod(const Tensor& x, const Axes& axis, bool keepdims, std::optional<DType> dtype) {
  const Tensor in = dtype ? ops::cast(x, *dtype) : countable(x);
  const std::vector<int> axes = axis.of(x.rank());
  const Tensor out = product_of_last(internal::flatten_axes(in, axes));
  return ops::reshape(out, internal::reduced(x.shape(), axes, keepdims));
}
Tensor var(const Tensor& x, const Axes& axis, bool keepdims) {
  const Tensor in = floating(x);
  return mean(ops::square(in - mean(in, axis, true)), axis, keepdims);
}
Tensor std(const Tensor& x, const Axes& axis, bool keepdims) {
  return ops::sqrt(var(x, axis, keepdims));
}
std::pair<Tensor, Tensor> moments(const Tensor& x, const Axes& axes, bool keepdims,
                                  bool synchronized) {
  if (synchronized) {
    throw NotImplementedError(
        "moments: synchronized is not supported; use BatchNormalization with synchronized");
  }
  return {mean(x, axes, keepdims), var(x, axes, keepdims)};
}
Tensor average(const Tensor& x, Axis axis, const std::optional<Operand>& weights) {
  const Axes axes = axis ? Axes(*axis) : Axes();
  if (!weights) return mean(x, axes);
  auto [in, w] = internal::promoted_floating(x, *weights);
  if (axis && w.rank() == 1 && in.rank() != 1) {
    Shape shape(std::vector<int64_t>(in.rank(), 1));
    w = ops::reshape(w, shape.with(*axis, w.dim(0)));
  }
  w = ops::broadcast_to(w, in.shape());
  return sum(in * w, axes) / sum(w, axes);
}
Tensor count_nonzero(const Tensor& x, const Axes& axis) {
  return sum(ops::cast(ops::cast(x, DType::kBool), DType::kInt32), axis);
}
Tensor logsumexp(const Tensor& x, const Axes& axis, bool keepdims) {
  const Tensor in = floating(x);
  Tensor greatest = ops::stop_gradient(max(in, axis, true));
  greatest = ops::where(isfinite(greatest), greatest, ops::zeros_like(greatest));
  const Tensor total = ops::log(sum(ops::exp(in - greatest), axis, true)) + greatest;
  return ops::reshape(total, internal::reduced(x.shape(), axis.of(x.rank()), keepdims));
}

// ---- Extrema.

Tensor max(const Tensor& x, const Axes& axis, bool keepdims, std::optional<double> initial) {
  return extremum(ops::max, maximum, x, axis, keepdims, initial);
}
Tensor min(const Tensor& x, const Axes& axis, bool keepdims, std::optional<double> initial) {
  return extremum(ops::min, minimum, x, axis, keepdims, initial);
}
Tensor amax(const Tensor& x, const Axes& axis, bool keepdims) { return max(x, axis, keepdims); }
Tensor amin(const Tensor& x, const Axes& axis, bool keepdims) { return min(x, axis, keepdims); }
Tensor ptp(const Tensor& x, const Axes& axis, bool keepdims) {
  return max(x, axis, keepdims) - min(x, axis, keepdims);
}
Tensor argmax(const Tensor& x, Axis axis, bool keepdims) {
  const Tensor in = axis ? countable(x) : ops::reshape(countable(x), {x.shape().size()});
  const Tensor out = ops::cast(ops::argmax(in, axis.value_or(0)), DType::kInt32);
  if (!keepdims) return out;
  return ops::reshape(
      out, internal::reduced(x.shape(), (axis ? Axes(*axis) : Axes()).of(x.rank()), true));
}
Tensor argmin(const Tensor& x, Axis axis, bool keepdims) {
  // -1 - x reverses the order without overflow, also for the smallest integer.
  const Tensor in = countable(x);
  return argmax(is_floating(x.dtype()) ? -in : bitwise_not(in), axis, keepdims);
}

// ---- Quantiles.

Tensor median(const Tensor& x, const Axes& axis, bool keepdims) {
  return quantile(x, 0.5, axis, "linear", keepdims);
}
Tensor quantile(const Tensor& x, const Operand& q, const Axes& axis, const std::string& method,
                bool keepdims) {
  return quantiles(x, q, axis, method, keepdims, false);
}
Tensor percentile(const Tensor& x, const Operand& q, const Axes& axis, const std::string& method,
                  bool keepdims) {
  return quantiles(x, fraction_of(q), axis, method, keepdims, false);
}

// ---- Reductions that ignore NaN.

Tensor nansum(const Tensor& x, const Axes& axis, bool keepdims) {
  return sum(without_nan(x, 0), axis, keepdims);
}
Tensor nanmean(const Tensor& x, const Axes& axis, bool keepdims) {
  return nansum(floating(x), axis, keepdims) / valid_count(x, axis, keepdims);
}
Tensor nanprod(const Tensor& x, const Axes& axis, bool keepdims) {
  return prod(without_nan(x, 1), axis, keepdims);
}
Tensor nanvar(const Tensor& x, const Axes& axis, bool keepdims) {
  const Tensor in = floating(x);
  // Squares of NaN would give NaN gradients to all elements.
  const Tensor zero = Tensor::scalar(0.0).cast(in.dtype());
  const Tensor deviation = ops::where(ops::is_nan(in), zero, in - nanmean(in, axis, true));
  return sum(ops::square(deviation), axis, keepdims) / valid_count(in, axis, keepdims);
}
Tensor nanstd(const Tensor& x, const Axes& axis, bool keepdims) {
  return ops::sqrt(nanvar(x, axis, keepdims));
}
Tensor nanmax(const Tensor& x, const Axes& axis, bool keepdims) {
  return nan_extremum(x, axis, keepdims, -kInfinity, max);
}
Tensor nanmin(const Tensor& x, const Axes& axis, bool keepdims) {
  return nan_extremum(x, axis, keepdims, kInfinity, min);
}
Tensor nanargmax(const Tensor& x, Axis axis, bool keepdims) {
  return nan_argument(x, axis, keepdims, -kInfinity, argmax);
}
Tensor nanargmin(const Tensor& x, Axis axis, bool keepdims) {
  return nan_argument(x, axis, keepdims, kInfinity, argmin);
}
Tensor nanmedian(const Tensor& x, const Axes& axis, bool keepdims) {
  return nanquantile(x, 0.5, axis, "linear", keepdims);
}
Tensor nanquantile(const Tensor& x, const Operand& q, const Axes& axis, const std::string& method,
                   bool keepdims) {
  return quantiles(x, q, axis, method, keepdims, true);
}
Tensor nanpercentile(const Tensor& x, const Operand& q, const Axes& axis, const std::string& method,
                     bool keepdims) {
  return quantiles(x, fraction_of(q), axis, method, keepdims, true);
}

// ---- Running results.

Tensor cumsum(const Tensor& x, Axis axis, std::optional<DType> dtype) {
  return running(ops::add, 0, x, axis, dtype);
}
Tensor cumprod(const Tensor& x, Axis axis, std::optional<DType> dtype) {
  return running(ops::multiply, 1, x, axis, dtype);
}
Tensor nancumsum(const Tensor& x, Axis axis, std::optional<DType> dtype) {
  return cumsum(without_nan(x, 0), axis, dtype);
}
Tensor nancumprod(const Tensor& x, Axis axis, std::optional<DType> dtype) {
  return cumprod(without_nan(x, 1), axis, dtype);
}
Tensor diff(const Tensor& a, int n, int axis) {
  if (n < 0) throw ValueError("diff: n must not be negative, received ", n);
  Tensor out = a;
  for (int i = 0; i < n && out.dim(axis) > 0; ++i) {
    const int64_t left = out.dim(axis) - 1;
    const Tensor next = ops::slice(out, axis, 1, left), here = ops::slice(out, axis, 0, left);
    out = a.dtype() == DType::kBool ? ops::not_equal(next, here) : next - here;
  }
  return out;
}
Tensor trapezoid(const Tensor& y, const std::optional<Tensor>& x, double dx, int axis) {
  const Tensor in = floating(y);
  const int64_t left = in.dim(axis) - 1;
  Tensor height = (ops::slice(in, axis, 1, left) + ops::slice(in, axis, 0, left)) * 0.5;
  if (!x) return ops::sum(height, {axis}) * dx;
  Tensor width = diff(floating(*x), 1, x->rank() == 1 ? 0 : axis);
  if (x->rank() == 1 && in.rank() != 1) {
    Shape shape(std::vector<int64_t>(in.rank(), 1));
    width = ops::reshape(width, shape.with(axis, left));
  }
  return sum(multiply(height, width), axis);
}

// ---- Counts.

Tensor bincount(const Tensor& x, const std::optional<Tensor>& weights, int64_t minlength) {
  const std::vector<int64_t> values = internal::integers_of("bincount", x);
  int64_t length = minlength;
  for (const int64_t v : values) {
    if (v < 0) throw ValueError("bincount: values must not be negative, received ", v);
    length = std::max(length, v + 1);
  }
  const DType dtype = weights ? weights->dtype() : DType::kInt32;
  const int64_t row = x.rank() == 0 ? 1 : x.dim(-1);
  const Shape shape = x.rank() == 0 ? Shape{length} : x.shape().with(-1, length);
  std::vector<double> sums(shape.size());
  const std::vector<double> amounts =
      weights ? internal::doubles_of(*weights) : std::vector<double>(values.size(), 1.0);
  if (amounts.size() != values.size()) {
    throw ValueError("bincount: weights must have the shape of x, ", x.shape(), ", received ",
                     weights->shape());
  }
  for (size_t i = 0; i < values.size(); ++i) {
    sums[static_cast<int64_t>(i) / row * length + values[i]] += amounts[i];
  }
  return Tensor::from(sums, shape).cast(dtype);
}

SparseTensor bincount_sparse(const Tensor& x, const std::optional<Tensor>& weights,
                             int64_t minlength) {
  const Tensor dense = bincount(x, weights, minlength);
  const std::vector<double> sums = internal::doubles_of(dense);
  std::vector<int64_t> indices;
  std::vector<double> values;
  size_t next = 0;
  internal::for_each_index(dense.shape(), [&](const std::vector<int64_t>& index) {
    const double sum = sums[next++];
    if (sum == 0) return;
    indices.insert(indices.end(), index.begin(), index.end());
    values.push_back(sum);
  });
  const auto count = static_cast<int64_t>(values.size());
  return {.indices = Tensor::from(indices, {count, dense.rank()}),
          .values = Tensor::from(values, {count}).cast(dense.dtype()),
          .dense_shape = dense.shape()};
}

std::pair<Tensor, Tensor> histogram(const Tensor& x, int64_t bins,
                                    std::optional<std::pair<double, double>> range) {
  if (bins < 1) throw ValueError("histogram: bins must be positive, received ", bins);
  const std::vector<double> values = internal::doubles_of(x);
  auto [low, high] = range.value_or(std::pair(0.0, 1.0));
  if (!range && !values.empty()) {
    low = *std::ranges::min_element(values);
    high = *std::ranges::max_element(values);
  }
  if (low > high) throw ValueError("histogram: range must not decrease: ", low, " to ", high);
  if (low == high) {
    low -= 0.5;
    high += 0.5;
  }
  const auto count = static_cast<double>(bins);
  // The edges have the precision of the values, so that a float 0.7 is in the bin that begins at
  // 0.7.
  const bool narrow = x.dtype() == DType::kFloat32;
  const auto rounded = [&](double v) {
    return narrow ? static_cast<double>(static_cast<float>(v)) : v;
  };
  std::vector<double> edges, counts(bins);
  for (int64_t i = 0; i <= bins; ++i) {
    edges.push_back(rounded(low + (high - low) * static_cast<double>(i) / count));
  }
  for (const double v : values) {
    if (!(v >= edges.front() && v <= edges.back())) continue;
    const auto bin = std::ranges::upper_bound(edges, v) - edges.begin() - 1;
    ++counts[std::min<int64_t>(bin, bins - 1)];
  }
  const DType dtype = floating(x).dtype();
  return {Tensor::from(counts, {bins}).cast(dtype), Tensor::from(edges, {bins + 1}).cast(dtype)};
}

}  // namespace keel::keras_ops
