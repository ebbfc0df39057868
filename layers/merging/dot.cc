#include <keel/autodiff/ops.h>
#include <keel/layers/internal/unit_length.h>
#include <keel/layers/merging/internal/merge_inputs.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/registry.h>

namespace keel {
namespace {

// Returns x with `axis` moved to position `to`.
Tensor moved(const Tensor& x, int axis, int to) {
  if (axis == to) return x;
  std::vector<int> permutation;
  for (int i = 0; i < x.rank(); ++i) {
    if (i != axis) permutation.push_back(i);
  }
  permutation.insert(permutation.begin() + to, axis);
  return ops::transpose(x, permutation);
}

}  // namespace

DotLayer::DotLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {
  const size_t count = options_.axes.values().size();
  if (count != 1 && count != 2) {
    throw ValueError("Dot ", name(), ": axes must contain one or two axes, received ", count);
  }
}

Tensors DotLayer::call(const Tensors& inputs, const CallContext&) {
  const std::vector<Tensor> tensors = promoted_inputs(*this, inputs, 2);
  if (tensors.size() != 2) {
    throw ValueError("Dot ", name(), ": inputs must be two tensors, received ", tensors.size());
  }
  Tensor x = tensors[0];
  Tensor y = tensors[1];
  const auto fail = [&](const char* what) {
    throw ValueError("Dot ", name(), ": ", what, ", received shapes ", x.shape(), " and ",
                     y.shape());
  };
  const std::vector<int>& axes = options_.axes.values();
  const auto axis_of = [&](const Tensor& t, int axis) {
    if (t.rank() < 2) fail("inputs must have rank 2 or more");
    if (axis < -t.rank() || axis >= t.rank()) fail("an axis is out of range");
    const int normalized = t.shape().normalize_axis(axis);
    if (normalized == 0) fail("an axis must not be the batch axis");
    return normalized;
  };
  const int x_axis = axis_of(x, axes.front());
  const int y_axis = axis_of(y, axes.back());
  if (!compatible({x.dim(0), x.dim(x_axis)}, {y.dim(0), y.dim(y_axis)})) {
    fail("the batch sizes and the lengths of the summed axes must agree");
  }
  const Shape rows = x.shape().without(0).without(x_axis - 1);
  const Shape columns = y.shape().without(0).without(y_axis - 1);
  Shape out = Shape{x.dim(0)} + rows + columns;
  if (out.rank() == 1) out = out + Shape{1};
  if (x.is_symbolic() || y.is_symbolic()) {
    return Tensor::symbolic({.shape = out, .dtype = x.dtype()});
  }
  if (options_.normalize) {
    constexpr double kLeastLength = 1e-7;
    x = unit_length(x, {x_axis}, kLeastLength);
    y = unit_length(y, {y_axis}, kLeastLength);
  }
  if (rows.rank() == 0 && columns.rank() == 0) return ops::sum(x * y, {1}, true);
  const int64_t batch = x.dim(0);
  const int64_t length = x.dim(x_axis);
  const Tensor a = ops::reshape(moved(x, x_axis, x.rank() - 1), {batch, rows.size(), length});
  const Tensor b = ops::reshape(moved(y, y_axis, 1), {batch, length, columns.size()});
  return ops::reshape(ops::matmul(a, b), out);
}

KEEL_REGISTER(Layer, DotLayer, .package = "keras")

}  // namespace keel
