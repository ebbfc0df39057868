#include <keel/autodiff/keras_ops/creation.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/ops.h>
#include <keel/framework/internal/window_functions.h>

namespace keel::keras_ops {
namespace {

Tensor from_doubles(const std::vector<double>& values, const Shape& shape, DType dtype) {
  return Tensor::from(values, shape).cast(dtype);
}

// Returns a matrix of ones where holds(column - row).
template <class Holds>
Tensor matrix_of_ones(int64_t rows, std::optional<int64_t> columns, std::optional<DType> dtype,
                      const Holds& holds) {
  const Shape shape = {rows, columns.value_or(rows)};
  std::vector<double> out;
  internal::for_each_index(shape, [&](const auto& i) { out.push_back(holds(i[1] - i[0])); });
  return from_doubles(out, shape, dtype.value_or(DType::kFloat32));
}

template <class Formula>
Tensor window(int64_t n, const Formula& formula) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) {
    // A window of one element is 1.
    out.push_back(n == 1 ? 1 : formula(static_cast<double>(i) / static_cast<double>(n - 1)));
  }
  return from_doubles(out, {n}, DType::kFloat32);
}

Tensor cosines(const char* name, int64_t n) {
  return from_doubles(*keel::internal::cosine_window(name, n, false), {n}, DType::kFloat32);
}

// Positions in double: rounding each position would add to the error of the result.
std::pair<Tensor, Tensor> spaced(const Operand& start, const Operand& stop, int64_t num,
                                 bool endpoint, int axis) {
  if (num < 0) throw ValueError("linspace: num must not be negative, received ", num);
  const Tensor first = ops::cast(start.tensor(), DType::kFloat64);
  const Tensor last = ops::cast(stop.tensor(), DType::kFloat64);
  const Tensor width = ops::subtract(last, first);
  const int64_t steps = endpoint ? num - 1 : num;
  const Tensor step = width / static_cast<double>(std::max<int64_t>(steps, 1));
  const Tensor origin = ops::broadcast_to(first, width.shape());
  std::vector<Tensor> out;
  for (int64_t i = 0; i < num; ++i) {
    const double fraction = steps == 0 ? 0 : static_cast<double>(i) / static_cast<double>(steps);
    out.push_back(origin + width * fraction);
  }
  if (out.empty()) return {Tensor::zeros(width.shape().inserted(axis, 0), DType::kFloat64), step};
  return {ops::stack(out, axis), step};
}

DType dtype_of_range(const Operand& start, const Operand& stop, std::optional<DType> dtype) {
  const DType natural = result_type({start, stop, Operand(1.0)});
  return dtype.value_or(natural);
}

double bessel_i0(double x) { return internal::doubles_of(i0(Tensor::scalar(x)))[0]; }

}  // namespace

// ---- Constants.

Tensor zeros(const Shape& shape, std::optional<DType> dtype) {
  return Tensor::zeros(shape, dtype.value_or(DType::kFloat32));
}
Tensor ones(const Shape& shape, std::optional<DType> dtype) { return full(shape, 1.0, dtype); }
Tensor empty(const Shape& shape, std::optional<DType> dtype) { return zeros(shape, dtype); }
Tensor full(const Shape& shape, const Operand& fill_value, std::optional<DType> dtype) {
  return ops::broadcast_to(ops::cast(fill_value.tensor(), dtype.value_or(DType::kFloat32)), shape);
}
Tensor zeros_like(const Tensor& x, std::optional<DType> dtype) {
  return ops::cast(ops::zeros_like(x), dtype.value_or(x.dtype()));
}
Tensor ones_like(const Tensor& x, std::optional<DType> dtype) {
  return ops::cast(ops::ones_like(x), dtype.value_or(x.dtype()));
}
Tensor empty_like(const Tensor& x, std::optional<DType> dtype) { return zeros_like(x, dtype); }
Tensor full_like(const Tensor& x, const Operand& fill_value, std::optional<DType> dtype) {
  return full(x.shape(), fill_value, dtype.value_or(x.dtype()));
}
Tensor eye(int64_t N, std::optional<int64_t> M, int64_t k, std::optional<DType> dtype) {
  return matrix_of_ones(N, M, dtype, [k](int64_t d) { return d == k; });
}
Tensor identity(int64_t n, std::optional<DType> dtype) { return eye(n, {}, 0, dtype); }
Tensor tri(int64_t N, std::optional<int64_t> M, int64_t k, std::optional<DType> dtype) {
  return matrix_of_ones(N, M, dtype, [k](int64_t d) { return d <= k; });
}

// ---- Ranges.

Tensor arange(const Operand& start, const std::optional<Operand>& stop,
              const std::optional<Operand>& step, std::optional<DType> dtype) {
  const auto number = [](const Operand& x) { return internal::doubles_of(x.tensor()).at(0); };
  const double first = stop ? number(start) : 0, last = number(stop ? *stop : start);
  const double by = step ? number(*step) : 1;
  if (by == 0) throw ValueError("arange: step must not be 0");
  const DType natural =
      result_type({start, stop.value_or(start), step.value_or(Operand(1)), Operand(0)});
  std::vector<double> out;
  for (int64_t i = 0;; ++i) {
    const double value = first + by * static_cast<double>(i);
    if (by > 0 ? !(value < last) : !(value > last)) break;
    out.push_back(value);
  }
  return from_doubles(out, {static_cast<int64_t>(out.size())}, dtype.value_or(natural));
}

std::pair<Tensor, Tensor> linspace_with_step(const Operand& start, const Operand& stop, int64_t num,
                                             bool endpoint, std::optional<DType> dtype, int axis) {
  const auto [points, step] = spaced(start, stop, num, endpoint, axis);
  const DType to = dtype_of_range(start, stop, dtype);
  return {ops::cast(points, to), ops::cast(step, is_floating(to) ? to : DType::kFloat32)};
}
Tensor linspace(const Operand& start, const Operand& stop, int64_t num, bool endpoint,
                std::optional<DType> dtype, int axis) {
  return linspace_with_step(start, stop, num, endpoint, dtype, axis).first;
}
Tensor logspace(const Operand& start, const Operand& stop, int64_t num, bool endpoint, double base,
                std::optional<DType> dtype, int axis) {
  const Tensor powers = spaced(start, stop, num, endpoint, axis).first;
  return ops::cast(power(base, powers), dtype_of_range(start, stop, dtype));
}
Tensor geomspace(const Operand& start, const Operand& stop, int64_t num, bool endpoint,
                 std::optional<DType> dtype, int axis) {
  const Tensor first = ops::cast(start.tensor(), DType::kFloat64);
  const Tensor last = ops::cast(stop.tensor(), DType::kFloat64);
  const Tensor powers =
      spaced(ops::log(ops::abs(first)), ops::log(ops::abs(last)), num, endpoint, axis).first;
  const Tensor sign_of_both =
      ops::expand_dims(ops::sign(ops::broadcast_to(first, powers.shape().without(axis))), axis);
  return ops::cast(ops::exp(powers) * sign_of_both, dtype_of_range(start, stop, dtype));
}

std::vector<Tensor> meshgrid(const std::vector<Tensor>& x, const std::string& indexing) {
  if (indexing != "xy" && indexing != "ij") {
    throw ValueError("meshgrid: indexing must be xy or ij, received '", indexing, "'");
  }
  const size_t n = x.size();
  std::vector<int64_t> dims;
  std::vector<Tensor> out;
  // With "xy", the first two axes change places.
  const auto axis_of = [&](size_t i) { return indexing == "xy" && n > 1 && i < 2 ? 1 - i : i; };
  for (size_t axis = 0; axis < n; ++axis) dims.push_back(x[axis_of(axis)].shape().size());
  for (size_t i = 0; i < n; ++i) {
    std::vector<int64_t> own(n, 1);
    own[axis_of(i)] = x[i].shape().size();
    out.push_back(ops::broadcast_to(ops::reshape(x[i], Shape(own)), Shape(dims)));
  }
  return out;
}

Tensor vander(const Tensor& x, std::optional<int64_t> N, bool increasing) {
  const int64_t columns = N.value_or(x.dim(0));
  std::vector<Tensor> powers;
  for (int64_t i = 0; i < columns; ++i) {
    powers.push_back(i == 0 ? ops::ones_like(x) : powers.back() * x);
  }
  if (!increasing) std::ranges::reverse(powers);
  return powers.empty() ? zeros({x.dim(0), 0}, x.dtype()) : ops::stack(powers, 1);
}

// ---- Windows.

Tensor bartlett(int64_t x) {
  return window(x, [](double t) { return 1 - std::abs(2 * t - 1); });
}
Tensor blackman(int64_t x) { return cosines("blackman", x); }
Tensor hamming(int64_t x) { return cosines("hamming", x); }
Tensor hanning(int64_t x) { return cosines("hann", x); }
Tensor kaiser(int64_t x, double beta) {
  return window(x, [beta](double t) {
    const double r = 2 * t - 1;
    return bessel_i0(beta * std::sqrt(std::max(0.0, 1 - r * r))) / bessel_i0(beta);
  });
}

// ---- Encodings and conversions.

Tensor one_hot(const Tensor& x, int64_t num_classes, int axis, std::optional<DType> dtype) {
  const DType to = dtype.value_or(DType::kFloat32);
  internal::FunctionOp op = {.name = "one_hot",
                             .outputs = {{.shape = x.shape() + Shape{num_classes}, .dtype = to}}};
  op.compute = [num_classes, to](std::span<const Tensor> in) {
    const std::vector<int64_t> ids = internal::integers_of("one_hot", in[0]);
    std::vector<uint8_t> out(ids.size() * num_classes);
    for (size_t i = 0; i < ids.size(); ++i) {
      if (ids[i] >= 0 && ids[i] < num_classes) out[i * num_classes + ids[i]] = 1;
    }
    return std::vector<Tensor>{Tensor::from(out, in[0].shape() + Shape{num_classes}).cast(to)};
  };
  const Tensor out = internal::call1(std::move(op), {x});
  return axis == -1 || axis == x.rank() ? out : moveaxis(out, {-1}, {axis});
}
Tensor multi_hot(const Tensor& inputs, int64_t num_classes, int axis, std::optional<DType> dtype) {
  const int along = axis < 0 ? axis - 1 : axis;
  if (inputs.rank() == 0) return one_hot(inputs, num_classes, -1, dtype);
  // The ids are on the axis before the one-hot vectors, which the greatest element removes.
  const Tensor each = one_hot(inputs, num_classes, -1, DType::kInt32);
  return ops::cast(max(each, along), dtype.value_or(DType::kFloat32));
}
namespace {

// Returns the indices of the ones that the ids of `x` set. The class stands on `axis` of the
// result; without `replaced`, it is a new axis, otherwise it takes the place of that of the ids.
SparseTensor ones_at(const Tensor& x, int64_t num_classes, int axis, bool replaced, DType dtype) {
  const int rank = x.rank() + (replaced ? 0 : 1);
  const int at = axis < 0 ? axis + rank : axis;
  if (at < 0 || at >= rank) throw ValueError("one_hot: axis ", axis, " is out of range");
  std::vector<int64_t> dims(x.shape().dims().begin(), x.shape().dims().end());
  if (replaced) dims.erase(dims.begin() + at);
  dims.insert(dims.begin() + at, num_classes);
  const std::vector<int64_t> ids = internal::integers_of("one_hot", x);
  std::set<std::vector<int64_t>> found;
  size_t next = 0;
  internal::for_each_index(x.shape(), [&](std::vector<int64_t> index) {
    const int64_t id = ids[next++];
    if (id < 0 || id >= num_classes) return;
    if (replaced) index.erase(index.begin() + at);
    index.insert(index.begin() + at, id);
    found.insert(std::move(index));
  });
  std::vector<int64_t> indices;
  for (const auto& index : found) indices.insert(indices.end(), index.begin(), index.end());
  const auto count = static_cast<int64_t>(found.size());
  return {.indices = Tensor::from(indices, {count, rank}),
          .values = ones({count}, dtype),
          .dense_shape = Shape(dims)};
}

}  // namespace

SparseTensor one_hot_sparse(const Tensor& x, int64_t num_classes, int axis,
                            std::optional<DType> dtype) {
  return ones_at(x, num_classes, axis, false, dtype.value_or(DType::kFloat32));
}
SparseTensor multi_hot_sparse(const Tensor& inputs, int64_t num_classes, int axis,
                              std::optional<DType> dtype) {
  return ones_at(inputs, num_classes, axis, inputs.rank() > 0, dtype.value_or(DType::kFloat32));
}
Tensor array(const Operand& x, std::optional<DType> dtype) { return convert_to_tensor(x, dtype); }
Tensor convert_to_tensor(const Operand& x, std::optional<DType> dtype) {
  return ops::cast(x.tensor(),
                   dtype.value_or(x.is_number() ? result_type({x}) : x.tensor().dtype()));
}

}  // namespace keel::keras_ops
