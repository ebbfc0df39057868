// The core functions of keras.ops: properties, conversions, slices, scattered updates, segments and
// control flow. Functions given as arguments run at once, and tapes record the ops in them.
#pragma once

#include <string>
#include <utility>
#include <variant>

#include <keel/autodiff/control_flow.h>
#include <keel/autodiff/keras_ops/operand.h>
#include <keel/autodiff/ops.h>

namespace keel::keras_ops {

// ---- Properties and conversions.

// Return a property of x.
inline Shape shape(const Tensor& x) { return x.shape(); }
inline int ndim(const Tensor& x) { return x.rank(); }
inline int64_t size(const Tensor& x) { return x.size(); }
inline DType dtype(const Tensor& x) { return x.dtype(); }
// Returns true unless the handle is empty.
inline bool is_tensor(const Tensor& x) { return static_cast<bool>(x); }
// Returns the same elements; the gradient passes through.
inline Tensor copy(const Tensor& x) { return x; }
// Returns x as a constant: no gradient reaches it.
inline Tensor stop_gradient(const Tensor& variable) { return ops::stop_gradient(variable); }
// Converts x to another dtype.
inline Tensor cast(const Tensor& x, DType dtype) { return ops::cast(x, dtype); }
// Like cast(), with values outside the range of the dtype clamped to it.
Tensor saturate_cast(const Tensor& x, DType dtype);
// Reads the bytes as another dtype of the same size.
Tensor view(const Tensor& x, std::optional<DType> dtype = {});

// ---- Slices.

// The positions start, start + step, ... before stop, as in Python.
struct Slice {
  std::optional<int64_t> start = {};  // default: the first position
  std::optional<int64_t> stop = {};   // default: the end
  std::optional<int64_t> step = {};   // default: 1; negative steps go backwards
};
// An index, which removes its axis, or a range.
using Key = std::variant<int64_t, Slice>;
// Returns the elements at one key for each of the first axes (x[key] in Python).
Tensor get_item(const Tensor& x, const std::vector<Key>& key);
// Returns the block of `shape` that begins at start_indices.
Tensor slice(const Tensor& inputs, const std::vector<int64_t>& start_indices, const Shape& shape);
// Returns `inputs` with the block at start_indices replaced.
Tensor slice_update(const Tensor& inputs, const std::vector<int64_t>& start_indices,
                    const Tensor& updates);

// ---- Scattered updates. Each row of `indices` [..., k] is an index of the first k axes.

// Sums values into zeros of `shape`.
Tensor scatter(const Tensor& indices, const Tensor& values, const Shape& shape);
// Returns `inputs` with elements replaced (the last one of equal indices wins), or combined with
// the updates if `reduction` is "add", "mul", "min" or "max". Equal minima and maxima share their
// gradient.
Tensor scatter_update(const Tensor& inputs, const Tensor& indices, const Tensor& updates,
                      const std::optional<std::string>& reduction = {});

// ---- Segments: rows of `data` with equal ids are combined. Ids outside of [0, num_segments) are
// ignored. Empty segments are 0, or for the extrema the least and the greatest value.

// Combine the rows of each segment: [num_segments, ...], by default up to the greatest id. `sorted`
// is a hint of Keras and has no effect: ids may be in any order.
Tensor segment_sum(const Tensor& data, const Tensor& segment_ids,
                   std::optional<int64_t> num_segments = {}, bool sorted = false);
Tensor segment_max(const Tensor& data, const Tensor& segment_ids,
                   std::optional<int64_t> num_segments = {}, bool sorted = false);
Tensor segment_min(const Tensor& data, const Tensor& segment_ids,
                   std::optional<int64_t> num_segments = {}, bool sorted = false);
Tensor segment_prod(const Tensor& data, const Tensor& segment_ids,
                    std::optional<int64_t> num_segments = {}, bool sorted = false);

// ---- Control flow.

using ops::cond;
using ops::while_loop;

// Returns val after val = body_fun(i, val) for each i in [lower, upper).
template <class Body, class Value>
Value fori_loop(int64_t lower, int64_t upper, Body&& body_fun, Value init_val) {
  const ControlFlowScope scope;
  for (int64_t i = lower; i < upper; ++i) init_val = body_fun(i, std::move(init_val));
  return init_val;
}

// Calls the branch with this index, clamped to the existing ones (keras.ops.switch).
template <class Branches, class... Operands>
auto switch_case(int64_t index, const Branches& branches, const Operands&... operands) {
  const auto last = static_cast<int64_t>(branches.size()) - 1;
  if (last < 0) throw ValueError("switch_case: requires at least one branch");
  const ControlFlowScope scope;
  return branches[index < 0 ? 0 : index > last ? last : index](operands...);
}

// Returns the results of f for each slice of the first axis, stacked.
template <class Function>
Tensor map(Function&& f, const Tensor& xs) {
  const ControlFlowScope scope;
  std::vector<Tensor> out;
  for (const Tensor& x : ops::split(xs, xs.dim(0), 0)) out.push_back(f(ops::squeeze(x, 0)));
  return ops::stack(out, 0);
}
// Returns the result of map(): functions are not vectorized.
template <class Function>
Tensor vectorized_map(Function&& function, const Tensor& elements) {
  return map(std::forward<Function>(function), elements);
}

// The optional arguments of scan().
struct ScanOptions {
  std::optional<int64_t> length = {};  // number of steps; must be that of xs (else ValueError)
  bool reverse = false;                // from the last slice to the first
  int64_t unroll = 1;                  // accepted; the steps run one by one
};
// Returns the last carry and the stacked y of (carry, y) = f(carry, x) over the slices of xs.
template <class Function, class Carry>
std::pair<Carry, Tensor> scan(Function&& f, Carry init, const Tensor& xs, bool reverse = false) {
  const ControlFlowScope scope;
  const std::vector<Tensor> parts = ops::split(xs, xs.dim(0), 0);
  std::vector<Tensor> ys(parts.size());
  for (size_t i = 0; i < parts.size(); ++i) {
    const size_t at = reverse ? parts.size() - 1 - i : i;
    auto [carry, y] = f(std::move(init), ops::squeeze(parts[at], 0));
    init = std::move(carry);
    ys[at] = std::move(y);
  }
  return {std::move(init), ops::stack(ys, 0)};
}
template <class Function, class Carry>
std::pair<Carry, Tensor> scan(Function&& f, Carry init, const Tensor& xs,
                              const ScanOptions& options) {
  if (options.length && *options.length != xs.dim(0)) {
    throw ValueError("scan: length ", *options.length, " is not that of xs, ", xs.dim(0));
  }
  return scan(std::forward<Function>(f), std::move(init), xs, options.reverse);
}
// Does the same without xs: (carry, y) = f(carry), options.length times.
template <class Function, class Carry>
std::pair<Carry, Tensor> scan(Function&& f, Carry init, const ScanOptions& options) {
  if (options.length.value_or(0) < 1) throw ValueError("scan: requires xs or a positive length");
  const ControlFlowScope scope;
  std::vector<Tensor> ys(*options.length);
  for (size_t i = 0; i < ys.size(); ++i) {
    auto [carry, y] = f(std::move(init));
    init = std::move(carry);
    ys[options.reverse ? ys.size() - 1 - i : i] = std::move(y);
  }
  return {std::move(init), ops::stack(ys, 0)};
}

// Returns the running results of an associative function along an axis.
template <class Function>
Tensor associative_scan(Function&& f, const Tensor& elems, bool reverse = false, int axis = 0) {
  const ControlFlowScope scope;
  std::vector<Tensor> parts = ops::split(elems, elems.dim(axis), axis);
  const size_t n = parts.size();
  for (size_t i = 1; i < n; ++i) {
    Tensor& here = parts[reverse ? n - 1 - i : i];
    here = f(parts[reverse ? n - i : i - 1], here);
  }
  return ops::concat(parts, axis);
}

}  // namespace keel::keras_ops
