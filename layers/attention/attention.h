// Attention and AdditiveAttention: averages of values, weighted by how well their keys match a
// query (keras.layers.Attention, keras.layers.AdditiveAttention).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {

// The options of AttentionLayer.
struct AttentionOptions {
  bool use_scale = false;            // multiply scores by the weight scale
  std::string score_mode = "dot";    // "dot" or "concat"
  double dropout = 0.0;              // dropout rate of the attention weights, in [0, 1]
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("use_scale", self.use_scale);
    field("score_mode", self.score_mode);
    field("dropout", self.dropout);
    field("seed", self.seed);
  }
};

// The options of AdditiveAttentionLayer.
struct AdditiveAttentionOptions {
  bool use_scale = true;             // multiply by the weight scale
  double dropout = 0.0;              // dropout rate of the attention weights, in [0, 1]
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("use_scale", self.use_scale);
    field("dropout", self.dropout);
    field("seed", self.seed);
  }
};

// Options of one call of the two layers.
struct AttentionCallOptions {
  std::optional<bool> training = {};     // unset: as the enclosing layer, else false
  bool return_attention_scores = false;  // also return the attention weights
  bool use_causal_mask = false;          // restrict query step i to the values 0 to i
};

// Base class of both layers. The weights are the softmax of score(query, key) over the steps of the
// values, and the output is weights . value.
// Input: a list of query [batch, tq, dim], value [batch, tv, dim'] and optionally key [batch, tv,
// dim], which defaults to the value. Output: [batch, tq, dim']. With return_attention_scores, the
// result is a tuple of the output and the weights [batch, tq, tv] after dropout.
// Values that the value's mask excludes have no weight. The output is zero where the query's mask
// is false. The output has the query's mask.
// Throws ValueError for another input structure and for ranks other than 3.
class AttentionBase : public Layer {
 public:
  using CallOptions = AttentionCallOptions;

  // Calls the layer with the options of attention layers.
  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;

 protected:
  // `options` has the fields dropout and seed.
  template <class Options>
  AttentionBase(const char* class_name, Options& options) : Layer(class_name, options) {
    make_dropout(options.dropout, options.seed);
  }
  // Returns the prefix of error messages.
  std::string caller() const { return class_name() + " " + name(); }
  // Returns the scores of all pairs of a query and a key, [batch, tq, tv].
  virtual Tensor scores(const Tensor& query, const Tensor& key) const = 0;
  void build_weights(const Specs& inputs) override;

 private:
  void make_dropout(double rate, std::optional<int64_t> seed);
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  std::optional<layers::Dropout> dropout_;
};

// Dot-product attention. With score_mode "dot", the score is scale (query . key) (Luong et al.
// 2015). With "concat", it is concat_score_weight * sum over dim of tanh(scale (query + key)). The
// weights `scale` (with use_scale) and `concat_score_weight` (with "concat") are scalars that are
// initialized to 1.
class AttentionLayer final : public AttentionBase {
 public:
  static constexpr char kClassName[] = "Attention";
  using Options = AttentionOptions;
  // Throws ValueError for an unknown score_mode, and unless 0 <= dropout <= 1.
  explicit AttentionLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  void build_weights(const Specs& inputs) override;
  Tensor scores(const Tensor& query, const Tensor& key) const override;

  const Options options_;
  Variable scale_, concat_score_weight_;
};

// Additive attention: the score is the sum over dim of scale * tanh(query + key) (Bahdanau et al.
// 2015). With use_scale, `scale` is a weight [dim].
class AdditiveAttentionLayer final : public AttentionBase {
 public:
  static constexpr char kClassName[] = "AdditiveAttention";
  using Options = AdditiveAttentionOptions;
  // Throws ValueError unless 0 <= dropout <= 1.
  explicit AdditiveAttentionLayer(Options options)
      : AttentionBase(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the last dimension of the query is known.
  void build_weights(const Specs& inputs) override;
  Tensor scores(const Tensor& query, const Tensor& key) const override;

  const Options options_;
  Variable scale_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Attention = LayerHandle<AttentionLayer>;
using AdditiveAttention = LayerHandle<AdditiveAttentionLayer>;
}  // namespace layers

}  // namespace keel
