#include <keel/autodiff/keras_ops/sorting.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include <keel/autodiff/keras_ops/comparison.h>
#include <keel/autodiff/keras_ops/elementwise.h>
#include <keel/autodiff/keras_ops/internal/function_op.h>
#include <keel/autodiff/keras_ops/reductions.h>
#include <keel/autodiff/keras_ops/shapes.h>
#include <keel/autodiff/ops.h>

namespace keel::keras_ops {
namespace {

using internal::FunctionOp;

// Returns the positions of the elements of each row of x in increasing order, or in decreasing one.
Tensor sorted_positions(const Tensor& x, bool decreasing) {
  FunctionOp op = {.name = "argsort", .outputs = {{.shape = x.shape(), .dtype = DType::kInt32}}};
  op.compute = [decreasing](std::span<const Tensor> in) {
    const int64_t n = in[0].dim(-1);
    Tensor out = Tensor::uninitialized(in[0].shape(), DType::kInt32);
    const auto to = out.mutable_data<int32_t>();
    visit_numeric(in[0].dtype(), "argsort", [&]<class T>(const T&) {
      const auto values = in[0].data<T>();
      for (size_t begin = 0; begin < values.size(); begin += n) {
        const T* row = values.data() + begin;
        const auto positions = to.subspan(begin, n);
        std::iota(positions.begin(), positions.end(), 0);
        std::ranges::stable_sort(positions, [&](int32_t a, int32_t b) {
          const T p = decreasing ? row[b] : row[a], q = decreasing ? row[a] : row[b];
          return p < q || (q != q && p == p);
        });
      }
    });
    return std::vector<Tensor>{out};
  };
  return internal::call1(std::move(op), {internal::countable(x)});
}

Tensor with_last(const Tensor& x, int axis) {
  return x.shape().normalize_axis(axis) == x.rank() - 1 ? x : swapaxes(x, axis, -1);
}

// Returns indices as int64 in [0, n): negative ones count from the end.
Tensor non_negative(const Tensor& indices, int64_t n) {
  const Tensor wide = internal::ids_of("take", indices);
  return ops::where(ops::less(wide, Tensor::scalar<int64_t>(0)), wide + static_cast<double>(n),
                    wide);
}

// Returns the elements of each row of x [..., n] at positions [..., k].
Tensor take_in_rows(const Tensor& x, const Tensor& positions) {
  const int64_t n = x.dim(-1), rows = x.shape().drop_last().size();
  std::vector<int64_t> first;
  for (int64_t r = 0; r < rows; ++r) first.push_back(r * n);
  const Tensor begin = Tensor::from(first, x.shape().with(-1, 1));
  const Tensor flat =
      ops::gather(ops::reshape(x, {x.shape().size()}), ops::add(non_negative(positions, n), begin));
  return flat;
}

Tensor boundaries_of(const char* name, const Tensor& sequence, const Tensor& values, bool right) {
  if (sequence.rank() != 1) {
    throw ValueError(name, ": the boundaries must have rank 1, received shape ", sequence.shape());
  }
  FunctionOp op = {.name = name, .outputs = {{.shape = values.shape(), .dtype = DType::kInt32}}};
  op.compute = [right](std::span<const Tensor> in) {
    const std::vector<double> bounds = internal::doubles_of(in[0]);
    std::vector<int32_t> out;
    for (const double v : internal::doubles_of(in[1])) {
      const auto at =
          right ? std::ranges::upper_bound(bounds, v) : std::ranges::lower_bound(bounds, v);
      out.push_back(static_cast<int32_t>(at - bounds.begin()));
    }
    return std::vector<Tensor>{Tensor::from(out, in[1].shape())};
  };
  return internal::call1(std::move(op), {sequence, values});
}

std::vector<Tensor> nonzero_as(const Tensor& x, DType dtype) {
  std::vector<std::vector<int64_t>> found(x.rank());
  const std::vector<double> values = internal::doubles_of(x);
  auto value = values.begin();
  internal::for_each_index(x.shape(), [&](const auto& index) {
    if (*value++ == 0) return;
    for (int axis = 0; axis < x.rank(); ++axis) found[axis].push_back(index[axis]);
  });
  std::vector<Tensor> out;
  for (const auto& axis : found) {
    out.push_back(Tensor::from(axis, {static_cast<int64_t>(axis.size())}).cast(dtype));
  }
  return out;
}

}  // namespace

// ---- Sorting.

Tensor sort(const Tensor& x, int axis) {
  const Tensor last = with_last(x, axis);
  return with_last(take_in_rows(last, sorted_positions(last, false)), axis);
}
Tensor argsort(const Tensor& x, int axis) {
  return with_last(sorted_positions(with_last(x, axis), false), axis);
}
Tensor argpartition(const Tensor& x, int64_t kth, int axis) {
  const int64_t n = x.dim(axis);
  if (kth < -n || kth >= n) throw ValueError("argpartition: kth must be in [0, ", n, ")");
  return argsort(x, axis);
}
std::pair<Tensor, Tensor> top_k(const Tensor& x, int64_t k, bool, bool) {
  if (k < 0 || k > x.dim(-1)) {
    throw ValueError("top_k: k must be at most ", x.dim(-1), ", received ", k);
  }
  const Tensor positions = ops::slice(sorted_positions(x, true), -1, 0, k);
  return {take_in_rows(x, positions), positions};
}
Tensor in_top_k(const Tensor& targets, const Tensor& predictions, int64_t k) {
  const Tensor own = take_in_rows(predictions, ops::expand_dims(targets, -1));
  const Tensor above = sum(ops::cast(ops::greater(predictions, own), DType::kInt32), -1);
  const Tensor finite = isfinite(ops::squeeze(own, -1));
  return ops::logical_and(less(above, Operand(k)), finite);
}

// ---- Searching.

Tensor searchsorted(const Tensor& sorted_sequence, const Tensor& values, const std::string& side) {
  if (side != "left" && side != "right") {
    throw ValueError("searchsorted: side must be left or right, received '", side, "'");
  }
  return boundaries_of("searchsorted", sorted_sequence, values, side == "right");
}
Tensor digitize(const Tensor& x, const Tensor& bins) {
  return boundaries_of("digitize", bins, x, true);
}
std::vector<Tensor> nonzero(const Tensor& x) { return nonzero_as(x, DType::kInt32); }

Unique unique(const Tensor& x, const UniqueOptions& options) {
  // Rows of one element if the tensor is flattened.
  const Tensor rows = options.axis ? moveaxis(x, {*options.axis}, {0}) : ravel(x);
  const int64_t count = rows.dim(0);
  const Shape inner = rows.shape().without(0);
  const int64_t width = inner.size();
  const std::vector<double> all = internal::doubles_of(rows);
  // NaN is last and equal to itself.
  const auto less = [](double a, double b) { return a < b || (!std::isnan(a) && std::isnan(b)); };
  const auto before = [less](const std::vector<double>& a, const std::vector<double>& b) {
    return std::ranges::lexicographical_compare(a, b, less);
  };
  std::map<std::vector<double>, std::vector<int32_t>, decltype(before)> positions(before);
  for (int64_t i = 0; i < count; ++i) {
    const auto begin = all.begin() + i * width;
    positions[std::vector<double>(begin, begin + width)].push_back(static_cast<int32_t>(i));
  }
  std::vector<double> values;
  std::vector<int32_t> index, counts, inverse(count);
  for (const auto& [row, at] : positions) {
    for (const int32_t i : at) inverse[i] = static_cast<int32_t>(index.size());
    values.insert(values.end(), row.begin(), row.end());
    index.push_back(at[0]);
    counts.push_back(static_cast<int32_t>(at.size()));
  }
  const int64_t size = options.size.value_or(std::ssize(index));
  std::vector<double> fill(width, options.fill_value.value_or(0));
  if (!options.fill_value && !index.empty()) std::copy_n(values.begin(), width, fill.begin());
  for (auto i = std::ssize(index); i < size; ++i)
    values.insert(values.end(), fill.begin(), fill.end());
  values.resize(size * width);
  index.resize(size, 0);
  counts.resize(size, 0);
  Tensor distinct = Tensor::from(values, Shape{size} + inner).cast(x.dtype());
  if (options.axis) distinct = moveaxis(distinct, {0}, {*options.axis});
  Unique out = {.values = distinct};
  if (options.return_index) out.index = Tensor::from(index, {size});
  if (options.return_inverse) {
    out.inverse = Tensor::from(inverse, options.axis ? Shape{count} : x.shape());
  }
  if (options.return_counts) out.counts = Tensor::from(counts, {size});
  return out;
}

// ---- Selection.

Tensor take(const Tensor& x, const Tensor& indices, Axis axis) {
  if (!axis) return take(ravel(x), indices, 0);
  const int along = x.shape().normalize_axis(*axis);
  const Tensor ids = non_negative(indices, x.dim(along));
  if (along == 0) return ops::gather(x, ids);
  // The result of gather has the axes of the indices first.
  std::vector<int> source, destination;
  for (int i = 0; i < indices.rank(); ++i) {
    source.push_back(i);
    destination.push_back(along + i);
  }
  return moveaxis(ops::gather(moveaxis(x, {along}, {0}), ids), source, destination);
}
Tensor take_along_axis(const Tensor& x, const Tensor& indices, Axis axis) {
  if (!axis) return take(ravel(x), ravel(indices), 0);
  const Tensor last = with_last(x, *axis), ids = with_last(indices, *axis);
  const Shape rows =
      broadcast_shapes(last.shape().with(-1, 1), ids.shape().with(-1, 1), "take_along_axis");
  const Tensor values = ops::broadcast_to(last, rows.with(-1, last.dim(-1)));
  return with_last(take_in_rows(values, ops::broadcast_to(ids, rows.with(-1, ids.dim(-1)))), *axis);
}
Tensor where(const Tensor& condition, const Operand& x1, const Operand& x2) {
  const auto [a, b] = internal::promoted(x1, x2);
  return ops::where(ops::cast(condition, DType::kBool), a, b);
}
std::vector<Tensor> where(const Tensor& condition) { return nonzero_as(condition, DType::kInt64); }
Tensor select(const std::vector<Tensor>& condlist, const std::vector<Tensor>& choicelist,
              const Operand& default_value) {
  if (condlist.empty() || condlist.size() != choicelist.size()) {
    throw ValueError("select: requires as many choices as conditions, received ", choicelist.size(),
                     " and ", condlist.size());
  }
  Operand out = default_value;
  for (size_t i = condlist.size(); i-- > 0;) out = where(condlist[i], choicelist[i], out);
  return out.tensor();
}
std::vector<Tensor> unravel_index(const Tensor& indices, const Shape& shape) {
  Tensor rest = non_negative(indices, shape.size());
  std::vector<Tensor> out;
  for (const int64_t stride : internal::strides_of(shape)) {
    const Operand divisor = Tensor::scalar(stride);
    out.push_back(ops::cast(floor_divide(rest, divisor), indices.dtype()));
    rest = mod(rest, divisor);
  }
  return out;
}

}  // namespace keel::keras_ops
