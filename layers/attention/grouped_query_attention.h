// GroupedQueryAttention: multi-head attention in which groups of query heads share keys and values
// (keras.layers.GroupQueryAttention).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/attention/head_projection.h>
#include <keel/layers/attention/multi_head_attention.h>

namespace keel {

// The options of GroupedQueryAttentionLayer.
struct GroupedQueryAttentionOptions {
  int64_t head_dim = 0;             // required, > 0
  int64_t num_query_heads = 0;      // required, > 0
  int64_t num_key_value_heads = 0;  // required, > 0; divides num_query_heads
  double dropout = 0.0;             // dropout rate of the attention weights, in [0, 1]
  bool use_bias = true;
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

// MultiHeadAttention with num_query_heads heads, where each group of num_query_heads /
// num_key_value_heads adjacent heads shares one projection of key and value (Ainslie et al. 2023).
// Calls, masks, results and names of weights are those of MultiHeadAttention for tensors [batch,
// steps, dim]. The kernels of key and value are [dim, num_key_value_heads, head_dim].
class GroupedQueryAttentionLayer final : public Layer, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "GroupQueryAttention";
  using Options = GroupedQueryAttentionOptions;
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
  Config get_config() const override { return to_config(options_); }

 private:
  std::string caller() const { return std::string(kClassName) + " " + name(); }
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor repeated(const Tensor& heads) const;

  const Options options_;
  std::optional<layers::EinsumDense> query_, key_, value_, output_;  // created by build()
  std::optional<layers::Dropout> dropout_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using GroupedQueryAttention = LayerHandle<GroupedQueryAttentionLayer>;
using GroupQueryAttention = GroupedQueryAttention;  // Keras's name
}  // namespace layers

}  // namespace keel
