// Attention with several heads: MultiHeadAttention and GroupedQueryAttention.
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
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Regularizer activity_regularizer = {};              // applied to the result of each projection
  Constraint kernel_constraint = {};  // applied to kernel after each step; unset: none
  Constraint bias_constraint = {};    // applied to bias after each step; unset: none
  std::optional<int64_t> seed = {};   // unset: the next stream of set_random_seed
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
  std::optional<bool> training = {};     // unset: as the enclosing layer, else false
  Tensor attention_mask = {};            // bool [batch, tq, tv], or [batch, heads, tq, tv]
  bool return_attention_scores = false;  // also return the attention weights
  bool use_causal_mask = false;          // restrict query step i to the values 0 to i
};

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
// Weights: kernel and bias of the projections "query", "key", "value" and "attention_output". The
// kernels are [dim, num_heads, key_dim or value_dim] and [num_heads, value_dim, output_shape...].
// Throws ValueError for another input structure, for ranks that differ or are below 3, if the steps
// of key and value differ, and if a last dimension is unknown.
class MultiHeadAttentionLayer final : public OptionsLayer<MultiHeadAttentionOptions, Layer>,
                                      public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "MultiHeadAttention";
  using CallOptions = MultiHeadAttentionCallOptions;
  // Throws ValueError for sizes that are not positive, and unless 0 <= dropout <= 1.
  explicit MultiHeadAttentionLayer(Options options);

  // Calls the layer with the options of multi-head attention.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::vector<std::string> sublayer_attributes() const override;

 private:
  std::string caller() const { return std::string(kClassName) + " " + name(); }
  int64_t value_dim() const { return options_.value_dim.value_or(options_.key_dim); }
  Shape output_shape(const Shape& query) const;
  std::vector<int> attention_axes(const Shape& query) const;
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensors symbolic_results(const Tensors& inputs) const;

  std::optional<layers::EinsumDense> query_, key_, value_, output_;  // created by build()
  std::optional<layers::Dropout> dropout_;
};

// The options of GroupedQueryAttentionLayer.
struct GroupedQueryAttentionOptions {
  int64_t head_dim = 0;             // required, > 0
  int64_t num_query_heads = 0;      // required, > 0
  int64_t num_key_value_heads = 0;  // required, > 0; divides num_query_heads
  double dropout = 0.0;             // dropout rate of the attention weights, in [0, 1]
  bool use_bias = true;             // add the weight bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Regularizer activity_regularizer = {};              // applied to the result of each projection
  Constraint kernel_constraint = {};  // applied to kernel after each step; unset: none
  Constraint bias_constraint = {};    // applied to bias after each step; unset: none
  std::optional<int64_t> seed = {};   // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("head_dim", self.head_dim);
    field("num_query_heads", self.num_query_heads);
    field("num_key_value_heads", self.num_key_value_heads);
    field("use_bias", self.use_bias);
    field("dropout", self.dropout);
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

// GroupedQueryAttention: multi-head attention in which groups of query heads share keys and values
// (keras.layers.GroupQueryAttention).
// MultiHeadAttention with num_query_heads heads, where each group of num_query_heads /
// num_key_value_heads adjacent heads shares one projection of key and value (Ainslie et al. 2023).
// Calls, masks, results and names of weights are those of MultiHeadAttention for tensors [batch,
// steps, dim]. The kernels of key and value are [dim, num_key_value_heads, head_dim].
class GroupedQueryAttentionLayer final : public OptionsLayer<GroupedQueryAttentionOptions, Layer>,
                                         public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "GroupQueryAttention";
  using CallOptions = MultiHeadAttentionCallOptions;
  // Throws ValueError for sizes that are not positive or do not divide, and unless 0 <= dropout <=
  // 1.
  explicit GroupedQueryAttentionLayer(Options options);

  // Calls the layer with the options of multi-head attention.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::vector<std::string> sublayer_attributes() const override;

 private:
  std::string caller() const { return std::string(kClassName) + " " + name(); }
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor repeated(const Tensor& heads) const;

  std::optional<layers::EinsumDense> query_, key_, value_, output_;  // created by build()
  std::optional<layers::Dropout> dropout_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using MultiHeadAttention = LayerHandle<MultiHeadAttentionLayer>;
using GroupedQueryAttention = LayerHandle<GroupedQueryAttentionLayer>;
using GroupQueryAttention = GroupedQueryAttention;  // Keras's name
}  // namespace layers

}  // namespace keel
