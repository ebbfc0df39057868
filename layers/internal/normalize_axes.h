// Normalizes tensors over some of their axes.
#pragma once

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <keel/autodiff/normalization_ops.h>
#include <keel/autodiff/ops.h>

namespace keel {

// Returns fn(x) for a function that keeps the shape, with `axes` of x, ascending, moved to the end
// for the call.
template <class Fn>
Tensor with_axes_last(const Tensor& x, const std::vector<int>& axes, const Fn& fn) {
  std::vector<int> order(x.rank()), back(x.rank());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_partition(order,
                                [&](int axis) { return !std::ranges::binary_search(axes, axis); });
  if (std::ranges::is_sorted(order)) return fn(x);
  for (int i = 0; i < x.rank(); ++i) back[order[i]] = i;
  return ops::transpose(fn(ops::transpose(x, order)), back);
}

// Returns ops::normalize() with moments over `axes`, ascending, for each position of the other
// axes. gamma and beta have the dimensions of the axes; empty handles stand for ones and zeros.
// Throws ValueError, naming `caller`, if x has other dimensions along the axes.
inline Tensor normalize_axes(const Tensor& x, const std::vector<int>& axes, const Tensor& gamma,
                             const Tensor& beta, const ops::NormalizeOptions& options,
                             const std::string& caller) {
  Shape dims;
  for (const int axis : axes) dims = dims.inserted(dims.rank(), x.shape()[axis]);
  for (const Tensor& weight : {gamma, beta}) {
    if (weight && !compatible(weight.shape(), dims)) {
      throw ValueError(caller, ": an input of shape ", x.shape(), " does not fit weights of shape ",
                       weight.shape());
    }
  }
  if (x.is_symbolic()) return Tensor::symbolic(x.spec());
  const int64_t width = dims.size();
  const auto flat = [width](const Tensor& weight) {
    return weight ? ops::reshape(weight, {width}) : weight;
  };
  return with_axes_last(x, axes, [&](const Tensor& last) {
    int64_t samples = 1;
    for (int i = 0; i < last.rank() - dims.rank(); ++i) samples *= last.dim(i);
    const Tensor rows = ops::reshape(last, {samples, 1, 1, width});
    return ops::reshape(ops::normalize(rows, flat(gamma), flat(beta), options).y, last.shape());
  });
}

}  // namespace keel
