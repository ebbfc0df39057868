// MultiHeadAttention: attention with several heads.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/axes.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/layer_types.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {

// The options of MultiHeadAttentionLayer.
struct MultiHeadAttentionOptions {
  int64_t num_heads = 0;                    // required, > 0
  int64_t key_dim = 0;                      // required, > 0: size of a head's queries and keys
  std::optional<int64_t> value_dim = {};    // size of a head's values; unset: key_dim
  double dropout = 0.0;                     // dropout rate of the attention weights, in [0, 1]
  bool use_bias = true;                     // add the weight bias
  std::optional<Axes> output_shape = {};    // shape of an output step; unset: that of the query
  std::optional<Axes> attention_axes = {};  // unset: all axes except the first and the last
  // A query step sees the key steps within sliding_window - 1 steps, > 0; unset: all of them.
  std::optional<int64_t> sliding_window = {};
  std::optional<bool> flash_attention = {};           // see MultiHeadAttentionLayer
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Regularizer activity_regularizer = {};              // applied to the result of each projection
  Constraint kernel_constraint = {};  // applied to kernel after each step; unset: none
  Constraint bias_constraint = {};    // applied to bias after each step; unset: none
  bool use_gate = false;              // multiply the heads by sigmoid(projection of the query)
  std::optional<int64_t> seed = {};   // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("num_heads", self.num_heads);
    field("key_dim", self.key_dim);
    field("value_dim", self.value_dim);
    field("dropout", self.dropout);
    field("use_bias", self.use_bias);
    field("use_gate", self.use_gate);
    field("output_shape", self.output_shape);
    field("attention_axes", self.attention_axes);
    field("sliding_window", self.sliding_window);
    field("flash_attention", self.flash_attention);
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
  std::optional<bool> training = {};     // unset: as the enclosing layer, else false
  Tensor attention_mask = {};            // bool [batch, tq, tv], or [batch, heads, tq, tv]
  bool return_attention_scores = false;  // also return the attention weights
  bool use_causal_mask = false;          // restrict query step i to the values 0 to i
};

// Returns a config without the key flash_attention, which Keras does not write.
inline Config without_flash_attention(Config config) {
  config.erase("flash_attention");
  return config;
}

// MultiHeadAttention: attention with several heads, each with its own projections
// (keras.layers.MultiHeadAttention).
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
// With flash_attention, the weights are never stored as a whole (autodiff/attention_ops.h). Unset:
// where this is faster, without dropout in training, scores, and several attention_axes. If set, a
// call that needs the weights throws ValueError. Keras's configs do not have it, nor do files.
// Weights: kernel and bias of the projections "query", "key", "value" and "attention_output", and
// of "gate" with use_gate. The
// kernels are [dim, num_heads, key_dim or value_dim] and [num_heads, value_dim, output_shape...].
// Throws ValueError for another input structure, for ranks that differ or are below 3, if the steps
// of key and value differ, and if a last dimension is unknown.
class MultiHeadAttentionLayer final : public OptionsLayer<MultiHeadAttentionOptions, Layer>,
                                      public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "MultiHeadAttention";
  using CallOptions = MultiHeadAttentionCallOptions;
  // Throws ValueError for sizes that are not positive, and unless 0 <= dropout <= 1; also for
  // flash_attention with dropout.
  explicit MultiHeadAttentionLayer(Options options);

  // Calls the layer with the options of multi-head attention.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::vector<std::string> sublayer_attributes() const override;
  Config get_config() const override;

 private:
  std::string caller() const { return std::string(kClassName) + " " + name(); }
  int64_t value_dim() const { return options_.value_dim.value_or(options_.key_dim); }
  Shape output_shape(const Shape& query) const;
  std::vector<int> attention_axes(const Shape& query) const;
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensors symbolic_results(const Tensors& inputs) const;

  std::optional<layers::EinsumDense> query_, key_, gate_, value_, output_;  // created by build()
  std::optional<layers::Dropout> dropout_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using MultiHeadAttention = LayerHandle<MultiHeadAttentionLayer>;
}  // namespace layers

}  // namespace keel
