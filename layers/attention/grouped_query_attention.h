// GroupedQueryAttention: attention whose heads share keys and values.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/attention/multi_head_attention.h>

namespace keel {

// The options of GroupedQueryAttentionLayer.
struct GroupedQueryAttentionOptions {
  int64_t head_dim = 0;                        // required, > 0
  int64_t num_query_heads = 0;                 // required, > 0
  int64_t num_key_value_heads = 0;             // required, > 0; divides num_query_heads
  double dropout = 0.0;                        // dropout rate of the attention weights, in [0, 1]
  bool use_bias = true;                        // add the weight bias
  std::optional<int64_t> sliding_window = {};  // as in MultiHeadAttention
  std::optional<bool> flash_attention = {};    // likewise
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
    field("head_dim", self.head_dim);
    field("num_query_heads", self.num_query_heads);
    field("num_key_value_heads", self.num_key_value_heads);
    field("use_bias", self.use_bias);
    field("use_gate", self.use_gate);
    field("sliding_window", self.sliding_window);
    field("flash_attention", self.flash_attention);
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
  Config get_config() const override { return without_flash_attention(to_config(options_)); }

 private:
  std::string caller() const { return std::string(kClassName) + " " + name(); }
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  Tensor repeated(const Tensor& heads) const;

  std::optional<layers::EinsumDense> query_, key_, gate_, value_, output_;  // created by build()
  std::optional<layers::Dropout> dropout_;
};

namespace layers {
// A handle to the layer.
using GroupedQueryAttention = LayerHandle<GroupedQueryAttentionLayer>;
// The same, under Keras's name.
using GroupQueryAttention = GroupedQueryAttention;
}  // namespace layers

}  // namespace keel
