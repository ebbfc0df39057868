// EmbedReduce: rows of a table by id, the rows of one sample combined
// (keras_rs.layers.EmbedReduce).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct EmbedReduceOptions {
  int64_t input_dim = 0;                           // required: rows, > 0
  int64_t output_dim = 0;                          // required: columns, > 0
  Initializer embeddings_initializer = "uniform";  // in [-0.05, 0.05)
  Regularizer embeddings_regularizer = {};
  Regularizer activity_regularizer = {};  // of the result
  Constraint embeddings_constraint = {};
  bool mask_zero = false;
  std::string combiner = "mean";  // "mean", "sum" or "sqrtn"
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("input_dim", self.input_dim);
    field("output_dim", self.output_dim);
    field("embeddings_initializer", self.embeddings_initializer);
    field("embeddings_regularizer", self.embeddings_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("embeddings_constraint", self.embeddings_constraint);
    field("mask_zero", self.mask_zero);
    field("combiner", self.combiner);
  }
};

struct EmbedReduceCallOptions {
  std::optional<bool> training = {};
  std::optional<TensorLike> weights = {};  // unset: ones
};

// Ids, int32 or int64 or floats that hold such, give [rows, output_dim]:
//   dense [rows]                          the row of each id
//   dense [rows, n], sparse, ragged       with e the rows of a sample's ids and w their weights:
//                                         sum  sum of w e
//                                         mean  sum of w e / sum of w
//                                         sqrtn  sum of w e / sqrt(sum of w^2)
//                                         and zeros where there is nothing or the divisor is 0
// For ids [rows] weights count only for sum; mean and sqrtn give the row.
// The shape of weights is the beginning of [ids..., output_dim]: one weight for each element, id
// or row, or one for all; weights of sparse and ragged ids stand at the ids' positions, or are
// dense [rows]. Without options a call takes the pair (ids, weights) too.
// Gradients reach the table, as IndexedSlices, and weights of dense ids; those of a sample whose
// divisor is 0 are 0. A regularizer or constraint of the table reads all of it.
// ValueError for an id outside [0, input_dim), weights of another shape, and ids of rank 3 or more;
// TypeError for weights of another layout.
class EmbedReduceLayer : public Layer {
 public:
  static constexpr char kClassName[] = "EmbedReduce";
  using Options = EmbedReduceOptions;
  using CallOptions = EmbedReduceCallOptions;
  // ValueError unless both dimensions are positive, and for another combiner; NotImplementedError
  // for mask_zero: give lists as ragged tensors instead.
  explicit EmbedReduceLayer(Options options);

  Tensors operator()(const Tensors& ids, const CallOptions& options = {});
  Tensor operator()(const Tensor& ids, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  const Options& options() const { return options_; }
  const Variable& embeddings() const { return embeddings_; }  // empty until built
  Config get_config() const override { return to_config(options_); }

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor reduce_weighted(const Tensor& ids, const Tensor& weights) const;

  const Options options_;
  Variable embeddings_;
};

namespace layers {
using EmbedReduce = LayerHandle<EmbedReduceLayer>;
}

}  // namespace keel
