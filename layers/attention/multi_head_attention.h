// MultiHeadAttention: attention with several heads, each with its own projections
// (keras.layers.MultiHeadAttention).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/attention/head_projection.h>
#include <keel/layers/axes.h>
#include <keel/layers/regularization/dropout.h>
#include <keel/layers/sublayer_attributes.h>

namespace keel {

// The options of MultiHeadAttentionLayer.
struct MultiHeadAttentionOptions {
  int64_t num_heads = 0;                  // required, > 0
  int64_t key_dim = 0;                    // required, > 0: size of a head's queries and keys
  std::optional<int64_t> value_dim = {};  // size of a head's values; unset: key_dim
  double dropout = 0.0;                   // dropout rate of the attention weights, in [0, 1]
  bool use_bias = true;
  std::optional<Axes> output_shape = {};    // shape of an output step; unset: that of the query
  std::optional<Axes> attention_axes = {};  // unset: all axes except the first and the last
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // applied to the result of each projection
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num_heads", self.num_heads);
    field("key_dim", self.key_dim);
    field("value_dim", self.value_dim);
    field("dropout", self.dropout);
    field("use_bias", self.use_bias);
    field("output_shape", self.output_shape);
    field("attention_axes", self.attention_axes);
    field("kernel_initializer", self.kernel_initializer);
    field("bias_initializer", self.bias_initializer);
    field("kernel_regularizer", self.kernel_regularizer);
    field("bias_regularizer", self.bias_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("kernel_constraint", self.kernel_constraint);
    field("bias_constraint", self.bias_constraint);
    field("seed", self.seed);
  }
};

// Options of one call of the layer.
struct MultiHeadAttentionCallOptions {
  std::optional<bool> training = {};
  Tensor attention_mask = {};  // bool [batch, tq, tv], or [batch, heads, tq, tv]
  bool return_attention_scores = false;
  bool use_causal_mask = false;  // restrict query step i to the values 0 to i
};

// Projects query, key and value for each head, and computes
//   weights = softmax over tv of query . key / sqrt(key_dim);   head = weights . value
// The output is a joint projection of all heads.
// Input: a list of query [batch, tq, dim], value [batch, tv, dim'] and optionally key [batch, tv,
// dim''], which defaults to the value. Output: [batch, tq, dim], or [batch, tq, output_shape...].
// With return_attention_scores, the result is a tuple of the output and the weights [batch,
// num_heads, tq, tv] before dropout. Inputs with more axes attend over attention_axes; the other
// axes are batch axes.
// A weight is 0 where attention_mask, or the mask of the query, value or key, is false. The output
// has the query's mask.
// Weights: kernel and bias of the projections "query", "key", "value" and "attention_output". The
// kernels are [dim, num_heads, key_dim or value_dim] and [num_heads, value_dim, output_shape...].
// Throws ValueError for another input structure, for ranks that differ or are below 3, if the steps
// of key and value differ, and if a last dimension is unknown.
class MultiHeadAttentionLayer final : public Layer, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "MultiHeadAttention";
  using Options = MultiHeadAttentionOptions;
  using CallOptions = MultiHeadAttentionCallOptions;
  // Throws ValueError for sizes that are not positive, and unless 0 <= dropout <= 1.
  explicit MultiHeadAttentionLayer(Options options);

  // Calls the layer with the options of multi-head attention.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::vector<std::string> sublayer_attributes() const override;
  Config get_config() const override { return to_config(options_); }

 private:
  std::string caller() const { return std::string(kClassName) + " " + name(); }
  int64_t value_dim() const { return options_.value_dim.value_or(options_.key_dim); }
  Shape output_shape(const Shape& query) const;
  std::vector<int> attention_axes(const Shape& query) const;
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensors symbolic_results(const Tensors& inputs) const;

  const Options options_;
  std::optional<layers::EinsumDense> query_, key_, value_, output_;  // created by build()
  std::optional<layers::Dropout> dropout_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using MultiHeadAttention = LayerHandle<MultiHeadAttentionLayer>;
}  // namespace layers

}  // namespace keel
