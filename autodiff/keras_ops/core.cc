#include <keel/autodiff/keras_ops/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/reductions.h>

namespace keel::keras_ops {
namespace {

using internal::kFill;

constexpr double kUnbounded = std::numeric_limits<double>::infinity();

// The positions of an axis of n elements that a slice selects, as in Python.
std::vector<int64_t> positions_of(const Slice& slice, int64_t n) {
  const int64_t step = slice.step.value_or(1);
  if (step == 0) throw ValueError("get_item: the step of a slice must not be 0");
  const auto bounded = [&](std::optional<int64_t> at, int64_t otherwise) {
    if (!at) return otherwise;
    const int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
    return std::clamp(*at < 0 ? *at + n : *at, low, high);
  };
  const int64_t start = bounded(slice.start, step > 0 ? 0 : n - 1);
  const int64_t stop = bounded(slice.stop, step > 0 ? n : -1);
  std::vector<int64_t> out;
  for (int64_t i = start; step > 0 ? i < stop : i > stop; i += step) out.push_back(i);
  return out;
}

// The flat positions of the block of `shape` at `start` in a tensor of shape `whole`.
std::vector<int64_t> block_positions(const char* name, const Shape& whole,
                                     const std::vector<int64_t>& start, const Shape& shape) {
  if (static_cast<int>(start.size()) != whole.rank() || shape.rank() != whole.rank()) {
    throw ValueError(name, ": start_indices and the block must have rank ", whole.rank());
  }
  for (int i = 0; i < whole.rank(); ++i) {
    if (start[i] < 0 || start[i] + shape[i] > whole[i]) {
      throw ValueError(name, ": the block of shape ", shape, " exceeds axis ", i, " of ", whole,
                       "; move its start or pass a smaller block");
    }
  }
  const std::vector<int64_t> strides = internal::strides_of(whole);
  std::vector<int64_t> out;
  internal::for_each_index(shape, [&](const auto& index) {
    int64_t at = 0;
    for (int i = 0; i < whole.rank(); ++i) at += (start[i] + index[i]) * strides[i];
    out.push_back(at);
  });
  return out;
}

// The flat positions of the elements of `shape` that rows of `indices` [..., k] select.
std::vector<int64_t> scattered_positions(const char* name, const Tensor& indices,
                                         const Shape& shape) {
  const auto k = static_cast<int>(indices.dim(-1));
  if (k > shape.rank()) {
    throw ValueError(name, ": indices must have at most ", shape.rank(),
                     " columns, one for each axis of ", shape, ", received ", k);
  }
  const int64_t row = shape.slice(k, shape.rank()).size();
  const std::vector<int64_t> ids = internal::integers_of(name, indices);
  std::vector<int64_t> out;
  for (size_t first = 0; first < ids.size(); first += k) {
    int64_t at = 0;
    for (int i = 0; i < k; ++i) {
      const int64_t id = ids[first + i] < 0 ? ids[first + i] + shape[i] : ids[first + i];
      if (id < 0 || id >= shape[i]) {
        throw ValueError(name, ": index ", ids[first + i], " is out of bounds of axis ", i, " of ",
                         shape, "; pass an index in [-n, n) for an axis of length n");
      }
      at = at * shape[i] + id;
    }
    for (int64_t j = 0; j < row; ++j) out.push_back(at * row + j);
  }
  return out;
}

// Replaces the elements at flat positions by the updates.
Tensor replaced(const Tensor& inputs, const std::vector<int64_t>& positions,
                const Tensor& updates) {
  const int64_t n = inputs.shape().size();
  const Tensor both = ops::concat(
      {ops::reshape(inputs, {n}),
       ops::reshape(ops::cast(updates, inputs.dtype()), {static_cast<int64_t>(positions.size())})},
      0);
  std::vector<int64_t> from(n);
  for (int64_t i = 0; i < n; ++i) from[i] = i;
  for (size_t i = 0; i < positions.size(); ++i) from[positions[i]] = n + static_cast<int64_t>(i);
  return internal::take_flat(both, from, inputs.shape());
}

using Segments = std::vector<std::vector<int64_t>>;  // the rows of each segment

Segments segments_of(const Tensor& data, const Tensor& segment_ids,
                     std::optional<int64_t> num_segments) {
  const std::vector<int64_t> ids = internal::integers_of("segment_ids", segment_ids);
  if (data.rank() == 0 || data.dim(0) != static_cast<int64_t>(ids.size())) {
    throw ValueError("segment_ids: requires one id for each row of the data of shape ",
                     data.shape(), ", received ", ids.size());
  }
  const int64_t count = num_segments.value_or(
      ids.empty() ? 0 : std::max<int64_t>(0, *std::ranges::max_element(ids) + 1));
  Segments out(count);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < count) out[ids[i]].push_back(static_cast<int64_t>(i));
  }
  return out;
}

// Returns [segments, rows of the longest segment, ...], with `fill` in the places without a row.
Tensor padded_segments(const Tensor& data, const Segments& segments, double fill) {
  size_t longest = 1;
  for (const auto& rows : segments) longest = std::max(longest, rows.size());
  const Shape row = data.shape().slice(1, data.rank());
  const int64_t width = row.size();
  std::vector<int64_t> positions;
  for (const auto& rows : segments) {
    for (size_t i = 0; i < longest; ++i) {
      for (int64_t j = 0; j < width; ++j) {
        positions.push_back(i < rows.size() ? rows[i] * width + j : kFill);
      }
    }
  }
  const Shape shape = {static_cast<int64_t>(segments.size()), static_cast<int64_t>(longest)};
  return internal::take_flat(data, positions, shape + row, fill);
}

// The least number of a dtype, as its value in double.
double lowest_of(DType dtype) {
  return is_floating(dtype) ? -kUnbounded
                            : -std::ldexp(1.0, static_cast<int>(8 * size_of(dtype) - 1));
}

double greatest_of(DType dtype) { return is_floating(dtype) ? kUnbounded : -lowest_of(dtype) - 1; }

}  // namespace

// ---- Conversions.

Tensor saturate_cast(const Tensor& x, DType dtype) {
  if (is_floating(dtype) || dtype == DType::kBool) return ops::cast(x, dtype);
  const bool is_unsigned = dtype == DType::kUint8;
  const int bits = static_cast<int>(8 * size_of(dtype)) - (is_unsigned ? 0 : 1);
  const double greatest = std::ldexp(1.0, bits) - 1, least = is_unsigned ? 0 : -greatest - 1;
  const Tensor bounded = ops::clip_by_value(ops::cast(x, DType::kFloat64), least, greatest);
  return ops::cast(bounded, dtype);
}

Tensor view(const Tensor& x, std::optional<DType> dtype) {
  const DType to = dtype.value_or(x.dtype());
  if (size_of(to) != size_of(x.dtype())) {
    throw ValueError("view: ", x.dtype(), " and ", to,
                     " have different sizes; use cast() to convert values");
  }
  internal::FunctionOp op = {.name = "view", .outputs = {{.shape = x.shape(), .dtype = to}}};
  op.compute = [to](std::span<const Tensor> in) {
    Tensor y = Tensor::uninitialized(in[0].shape(), to);
    std::ranges::copy(in[0].raw(), y.mutable_raw().begin());
    return std::vector<Tensor>{y};
  };
  return internal::call1(std::move(op), {x});
}

// ---- Slices.

Tensor get_item(const Tensor& x, const std::vector<Key>& key) {
  if (static_cast<int>(key.size()) > x.rank()) {
    throw ValueError("get_item: ", key.size(), " keys for shape ", x.shape(),
                     "; pass at most one key for each axis");
  }
  std::vector<std::vector<int64_t>> selected;
  std::vector<int64_t> block, shape;
  for (int axis = 0; axis < x.rank(); ++axis) {
    const int64_t n = x.dim(axis);
    const bool given = axis < static_cast<int>(key.size());
    if (given && std::holds_alternative<int64_t>(key[axis])) {
      const int64_t at = std::get<int64_t>(key[axis]);
      if (at < -n || at >= n) {
        throw ValueError("get_item: index ", at, " is out of bounds of axis ", axis, " of ",
                         x.shape(), "; pass an index in [-n, n) for an axis of length n");
      }
      selected.push_back({at < 0 ? at + n : at});
    } else {
      selected.push_back(positions_of(given ? std::get<Slice>(key[axis]) : Slice(), n));
      shape.push_back(static_cast<int64_t>(selected.back().size()));
    }
    block.push_back(static_cast<int64_t>(selected.back().size()));
  }
  const std::vector<int64_t> strides = internal::strides_of(x.shape());
  std::vector<int64_t> positions;
  internal::for_each_index(Shape(block), [&](const auto& index) {
    int64_t at = 0;
    for (size_t i = 0; i < index.size(); ++i) at += selected[i][index[i]] * strides[i];
    positions.push_back(at);
  });
  return internal::take_flat(x, positions, Shape(shape));
}

Tensor slice(const Tensor& inputs, const std::vector<int64_t>& start_indices, const Shape& shape) {
  Shape block = shape;
  for (int i = 0; i < block.rank() && i < inputs.rank(); ++i) {
    if (block[i] == kUnknown) block = block.with(i, inputs.dim(i) - start_indices.at(i));
  }
  return internal::take_flat(inputs, block_positions("slice", inputs.shape(), start_indices, block),
                             block);
}

Tensor slice_update(const Tensor& inputs, const std::vector<int64_t>& start_indices,
                    const Tensor& updates) {
  const auto positions =
      block_positions("slice_update", inputs.shape(), start_indices, updates.shape());
  return replaced(inputs, positions, updates);
}

// ---- Scattered updates.

Tensor scatter(const Tensor& indices, const Tensor& values, const Shape& shape) {
  return internal::scatter_flat(values, scattered_positions("scatter", indices, shape), shape);
}

namespace {

// The gradients of inputs and updates of scatter_update() that multiplies. Products of the factors
// before and after each factor avoid a division by zeros.
std::vector<Gradient> scattered_product_gradient(const VjpArgs& args,
                                                 const std::vector<int64_t>& positions) {
  const std::vector<double> dy = internal::doubles_of(args.output_gradients[0].dense());
  const std::vector<double> updates = internal::doubles_of(args.inputs[1]);
  std::vector<double> before = internal::doubles_of(args.inputs[0]);
  std::vector<double> after(dy.size(), 1), dupdates(updates.size());
  for (size_t i = 0; i < updates.size(); ++i) {
    dupdates[i] = dy[positions[i]] * before[positions[i]];
    before[positions[i]] *= updates[i];
  }
  for (size_t i = updates.size(); i-- > 0;) {
    dupdates[i] *= after[positions[i]];
    after[positions[i]] *= updates[i];
  }
  for (size_t p = 0; p < dy.size(); ++p) after[p] *= dy[p];
  return {Tensor::from(after, args.inputs[0].shape()).cast(args.inputs[0].dtype()),
          Tensor::from(dupdates, args.inputs[1].shape()).cast(args.inputs[1].dtype())};
}

// The same for a minimum or maximum: equal values share the gradient, as in TensorFlow.
std::vector<Gradient> scattered_extremum_gradient(const VjpArgs& args,
                                                  const std::vector<int64_t>& positions) {
  const std::vector<double> dy = internal::doubles_of(args.output_gradients[0].dense());
  const std::vector<double> y = internal::doubles_of(args.outputs[0]);
  const std::vector<double> inputs = internal::doubles_of(args.inputs[0]);
  const std::vector<double> updates = internal::doubles_of(args.inputs[1]);
  std::vector<double> shares(dy.size()), dinputs(dy.size()), dupdates(updates.size());
  for (size_t p = 0; p < dy.size(); ++p) shares[p] = inputs[p] == y[p] ? 1 : 0;
  for (size_t i = 0; i < updates.size(); ++i) {
    if (updates[i] == y[positions[i]]) ++shares[positions[i]];
  }
  for (size_t p = 0; p < dy.size(); ++p) {
    if (inputs[p] == y[p]) dinputs[p] = dy[p] / shares[p];
  }
  for (size_t i = 0; i < updates.size(); ++i) {
    const int64_t p = positions[i];
    if (updates[i] == y[p]) dupdates[i] = dy[p] / shares[p];
  }
  return {Tensor::from(dinputs, args.inputs[0].shape()).cast(args.inputs[0].dtype()),
          Tensor::from(dupdates, args.inputs[1].shape()).cast(args.inputs[1].dtype())};
}

}  // namespace

Tensor scatter_update(const Tensor& inputs, const Tensor& indices, const Tensor& updates,
                      const std::optional<std::string>& reduction) {
  const auto positions = scattered_positions("scatter_update", indices, inputs.shape());
  if (static_cast<int64_t>(positions.size()) != updates.shape().size()) {
    throw ValueError("scatter_update: requires one update for each of ", positions.size(),
                     " elements, received updates of shape ", updates.shape());
  }
  if (!reduction) return replaced(inputs, positions, updates);
  if (*reduction == "add") {
    return inputs +
           internal::scatter_flat(ops::cast(updates, inputs.dtype()), positions, inputs.shape());
  }
  double (*join)(double, double) = nullptr;
  if (*reduction == "mul") join = [](double a, double b) { return a * b; };
  if (*reduction == "min") join = [](double a, double b) { return std::min(a, b); };
  if (*reduction == "max") join = [](double a, double b) { return std::max(a, b); };
  if (join == nullptr) {
    throw ValueError("scatter_update: reduction must be add, mul, min or max, received '",
                     *reduction, "'");
  }
  internal::FunctionOp op = {.name = "scatter_update", .outputs = {inputs.spec()}};
  op.compute = [join, positions](std::span<const Tensor> in) {
    std::vector<double> out = internal::doubles_of(in[0]);
    const std::vector<double> values = internal::doubles_of(in[1]);
    for (size_t i = 0; i < values.size(); ++i) {
      out[positions[i]] = join(out[positions[i]], values[i]);
    }
    return std::vector<Tensor>{Tensor::from(out, in[0].shape()).cast(in[0].dtype())};
  };
  if (is_floating(inputs.dtype()) && is_floating(updates.dtype())) {
    op.vjp = [positions, product = *reduction == "mul"](const VjpArgs& args) {
      return product ? scattered_product_gradient(args, positions)
                     : scattered_extremum_gradient(args, positions);
    };
  }
  return internal::call1(std::move(op), {inputs, updates});
}

// ---- Segments.

Tensor segment_sum(const Tensor& data, const Tensor& segment_ids,
                   std::optional<int64_t> num_segments, bool) {
  const Segments segments = segments_of(data, segment_ids, num_segments);
  const auto count = static_cast<int64_t>(segments.size());
  const Shape row = data.shape().slice(1, data.rank());
  std::vector<int64_t> positions(data.shape().size(), kFill);
  for (int64_t s = 0; s < count; ++s) {
    for (const int64_t r : segments[s]) {
      for (int64_t j = 0; j < row.size(); ++j) positions[r * row.size() + j] = s * row.size() + j;
    }
  }
  return internal::scatter_flat(data, positions, Shape{count} + row);
}
Tensor segment_max(const Tensor& data, const Tensor& segment_ids,
                   std::optional<int64_t> num_segments, bool) {
  const Segments segments = segments_of(data, segment_ids, num_segments);
  return max(padded_segments(data, segments, lowest_of(data.dtype())), 1);
}
Tensor segment_min(const Tensor& data, const Tensor& segment_ids,
                   std::optional<int64_t> num_segments, bool) {
  const Segments segments = segments_of(data, segment_ids, num_segments);
  return min(padded_segments(data, segments, greatest_of(data.dtype())), 1);
}
Tensor segment_prod(const Tensor& data, const Tensor& segment_ids,
                    std::optional<int64_t> num_segments, bool) {
  return prod(padded_segments(data, segments_of(data, segment_ids, num_segments), 1), 1);
}

}  // namespace keel::keras_ops
