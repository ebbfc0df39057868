// Reductions of keras.ops. `axis` is one axis, a list, or by default all. With `keepdims`, reduced
// axes stay with dimension 1. Sums use one fixed order for any number of threads.
#pragma once

#include <string>

#include <keel/autodiff/keras_ops/operand.h>
#include <keel/framework/tensor_like.h>

namespace keel::keras_ops {

// ---- Sums and moments. Sums of bools are int32; the others convert integers to float32.

// Return the sum, the arithmetic mean, the product, the variance and its root.
Tensor sum(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor mean(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor prod(const Tensor& x, const Axes& axis = {}, bool keepdims = false,
            std::optional<DType> dtype = {});
Tensor var(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor std(const Tensor& x, const Axes& axis = {}, bool keepdims = false);  // sqrt(var)
// Returns mean and variance.
std::pair<Tensor, Tensor> moments(const Tensor& x, const Axes& axes, bool keepdims = false,
                                  bool synchronized = false);
// Returns sum(weights x) / sum(weights); 1-D weights belong to `axis`.
Tensor average(const Tensor& x, Axis axis = {}, const std::optional<Operand>& weights = {});
Tensor count_nonzero(const Tensor& x, const Axes& axis = {});  // int32
// Returns log(sum(e^x)) without overflow.
Tensor logsumexp(const Tensor& x, const Axes& axis = {}, bool keepdims = false);

// ---- Extrema. `initial` takes part in the comparison.

// Return the greatest or the smallest element.
Tensor max(const Tensor& x, const Axes& axis = {}, bool keepdims = false,
           std::optional<double> initial = {});
Tensor min(const Tensor& x, const Axes& axis = {}, bool keepdims = false,
           std::optional<double> initial = {});
Tensor amax(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor amin(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor ptp(const Tensor& x, const Axes& axis = {}, bool keepdims = false);  // max - min
// Return int32 positions; the first one if several elements are equal. NaN counts as the greatest
// element of argmax() and the least one of argmin(), as for numpy, JAX and PyTorch.
Tensor argmax(const Tensor& x, Axis axis = {}, bool keepdims = false);
Tensor argmin(const Tensor& x, Axis axis = {}, bool keepdims = false);

// ---- Quantiles. `q` is a number or a vector, whose axis is the first one of the result. `method`
// is "linear", "lower", "higher", "midpoint" or "nearest".

// Return the element at a fraction (or percentage) of the sorted ones.
Tensor median(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor quantile(const Tensor& x, const Operand& q, const Axes& axis = {},
                const std::string& method = "linear", bool keepdims = false);
Tensor percentile(const Tensor& x, const Operand& q, const Axes& axis = {},
                  const std::string& method = "linear", bool keepdims = false);

// ---- Reductions that ignore NaN.

// Reduce the elements that are not NaN.
Tensor nansum(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor nanmean(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor nanprod(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor nanvar(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor nanstd(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor nanmax(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor nanmin(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
// Return positions; -1 where all elements are NaN.
Tensor nanargmax(const Tensor& x, Axis axis = {}, bool keepdims = false);
Tensor nanargmin(const Tensor& x, Axis axis = {}, bool keepdims = false);
// Return quantiles of the elements that are not NaN.
Tensor nanmedian(const Tensor& x, const Axes& axis = {}, bool keepdims = false);
Tensor nanquantile(const Tensor& x, const Operand& q, const Axes& axis = {},
                   const std::string& method = "linear", bool keepdims = false);
Tensor nanpercentile(const Tensor& x, const Operand& q, const Axes& axis = {},
                     const std::string& method = "linear", bool keepdims = false);

// ---- Running results. Without `axis` they are those of the flattened tensor.

// Return the sums or products of each element and those before it. The functions whose names begin
// with nan take NaN for 0 or 1.
Tensor cumsum(const Tensor& x, Axis axis = {}, std::optional<DType> dtype = {});
Tensor cumprod(const Tensor& x, Axis axis = {}, std::optional<DType> dtype = {});
Tensor nancumsum(const Tensor& x, Axis axis = {}, std::optional<DType> dtype = {});
Tensor nancumprod(const Tensor& x, Axis axis = {}, std::optional<DType> dtype = {});
// Returns the n-th differences of neighbors along the axis.
Tensor diff(const Tensor& a, int n = 1, int axis = -1);
// Returns the integral of y by the trapezoidal rule, at points x or with distance dx.
Tensor trapezoid(const Tensor& y, const std::optional<Tensor>& x = {}, double dx = 1,
                 int axis = -1);

// ---- Counts.

// Counts, or sums the weights of, each value from 0 in the last axis of x, up to the greatest value
// or minlength - 1.
Tensor bincount(const Tensor& x, const std::optional<Tensor>& weights = {}, int64_t minlength = 0);
// Returns the same with sparse=true: the sums that are not 0.
SparseTensor bincount_sparse(const Tensor& x, const std::optional<Tensor>& weights = {},
                             int64_t minlength = 0);
// Returns the counts of equal bins and the edges of the bins.
std::pair<Tensor, Tensor> histogram(const Tensor& x, int64_t bins = 10,
                                    std::optional<std::pair<double, double>> range = {});

}  // namespace keel::keras_ops
