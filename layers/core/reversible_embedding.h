// ReversibleEmbedding: looks up rows of a table by id, and projects rows back to scores of ids.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// The options of ReversibleEmbeddingLayer.
struct ReversibleEmbeddingOptions {
  int64_t input_dim = 0;                           // required, > 0: number of rows
  int64_t output_dim = 0;                          // required, > 0: number of columns
  bool tie_weights = true;                         // false: a weight of its own for the projection
  Initializer embeddings_initializer = "uniform";  // initial values of both weights
  Regularizer embeddings_regularizer = {};         // penalty on embeddings; unset: none
  Regularizer activity_regularizer = {};           // applied to the output
  Constraint embeddings_constraint = {};    // applied to embeddings after each step; unset: none
  bool mask_zero = false;                   // treat id 0 as padding: the output's mask is ids != 0
  std::optional<DType> reverse_dtype = {};  // of the projection; unset: that of the layer
  std::optional<double> logit_soft_cap = {};  // limit c > 0 of the scores x: c tanh(x / c)
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("input_dim", self.input_dim);
    field("output_dim", self.output_dim);
    field("embeddings_initializer", self.embeddings_initializer);
    field("embeddings_regularizer", self.embeddings_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("embeddings_constraint", self.embeddings_constraint);
    field("mask_zero", self.mask_zero);
    field("tie_weights", self.tie_weights);
    field("reverse_dtype", self.reverse_dtype);
    field("logit_soft_cap", self.logit_soft_cap);
  }
};

// Options of one call of a ReversibleEmbedding.
struct ReversibleEmbeddingCallOptions {
  std::optional<bool> training = {};  // unset: as the enclosing layer, else false
  bool reverse = false;               // project rows to scores
};

// The first and the last layer of a language model in one (keras.layers.ReversibleEmbedding; Press
// and Wolf 2017). A call returns embeddings[ids]: ids of any shape, int32, int64 or floats that
// hold integers -> [ids..., output_dim]. A call with `reverse` returns the products of the input
// with all rows: [..., output_dim] -> [..., input_dim], limited by logit_soft_cap. With
// reverse_dtype, the product is computed and returned in that dtype.
//
// Weights: embeddings [input_dim, output_dim] and, without tie_weights, reverse_embeddings
// [output_dim, input_dim]. A call of the second kind writes a dict of "inputs" and "reverse" into a
// graph.
//
// Throws ValueError for an id outside of [0, input_dim).
class ReversibleEmbeddingLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "ReversibleEmbedding";
  using Options = ReversibleEmbeddingOptions;
  using CallOptions = ReversibleEmbeddingCallOptions;
  // Throws ValueError unless both dimensions and logit_soft_cap are positive, and if reverse_dtype
  // is not a floating-point type.
  explicit ReversibleEmbeddingLayer(Options options);

  // Looks up ids or, with options.reverse, projects rows.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensor operator()(const Tensor& input, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  const Variable& embeddings() const { return embeddings_; }  // empty until built
  // The weight of the projection; empty until built, and with tie_weights.
  const Variable& reverse_embeddings() const { return reverse_embeddings_; }
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor project(const Tensor& x) const;
  std::string caller() const { return "ReversibleEmbedding " + name(); }

  const Options options_;
  Variable embeddings_, reverse_embeddings_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using ReversibleEmbedding = LayerHandle<ReversibleEmbeddingLayer>;
}  // namespace layers

}  // namespace keel
