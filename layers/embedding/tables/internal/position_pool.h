// PositionPool: pools rows that were looked up position by position. It replaces the pooling of
// lookup kernels for the combiner "max", and for weights with a gradient.
#pragma once

#include <string>
#include <vector>

#include <keel/framework/kernels/embedding/gather.h>
#include <keel/framework/tensor.h>
#include <keel/layers/embedding/tables/internal/bags.h>

namespace keel {

// The pooling of one batch of a feature.
class PositionPool {
 public:
  // Pools the positions of `bags`, which must have row_splits. `combiner` is "mean", "sum", "sqrtn"
  // or, without weights, "max".
  PositionPool(std::string combiner, const FeatureBags& bags);

  const Shape& output_shape() const { return output_shape_; }
  int64_t positions() const { return row_splits_.data<int64_t>().back(); }
  // Pools rows [n, dim], which gives [samples, dim]. Empty samples and divisors of 0 give zeros.
  Tensor pool(const Tensor& rows);
  // After pool(): return the gradients of its rows, [n, dim], and of the weights of the batch
  // before to_bags dropped any, float32 [weights_size]. dy is [samples, dim]. The gradient of a
  // maximum belongs to the first position that has it.
  Tensor rows_gradient(const Tensor& dy) const;
  Tensor weights_gradient(const Tensor& dy, int64_t weights_size) const;

 private:
  kernels::Bags bags(const std::vector<int64_t>& ids) const;
  std::vector<float> gains() const;
  void pool_max(const Tensor& rows, Tensor& out);

  std::string combiner_;
  Tensor row_splits_, weights_, weight_positions_;
  Shape output_shape_;
  std::vector<int64_t> first_max_;  // by element of the output: its position, or -1
  Tensor rows_, out_;               // kept for the gradient of weights
};

// Returns pool.pool(rows), recorded on the tapes as a function of `rows` and, unless empty, of
// `weights`, the values of the weights that the bags were made from.
Tensor pool_positions(PositionPool pool, const Tensor& rows, const Tensor& weights);

}  // namespace keel
