// Attention and AdditiveAttention: values mixed by how well their keys answer a query
// (keras.layers.Attention, keras.layers.AdditiveAttention).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/regularization/dropout.h>

namespace keel {

struct AttentionOptions {
  bool use_scale = false;
  std::string score_mode = "dot";    // "dot" or "concat"
  double dropout = 0.0;              // of the weights, in [0, 1]
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("use_scale", self.use_scale);
    field("score_mode", self.score_mode);
    field("dropout", self.dropout);
    field("seed", self.seed);
  }
};

struct AdditiveAttentionOptions {
  bool use_scale = true;
  double dropout = 0.0;              // of the weights, in [0, 1]
  std::optional<int64_t> seed = {};  // unset: the next stream of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("use_scale", self.use_scale);
    field("dropout", self.dropout);
    field("seed", self.seed);
  }
};

struct AttentionCallOptions {
  std::optional<bool> training = {};
  bool return_attention_scores = false;
  bool use_causal_mask = false;  // a step of the query sees the values up to its own number
};

// weights = softmax of score(query, key) over the steps of the values; output = weights . value.
// Input: a list of query [batch, tq, dim], value [batch, tv, dim'] and key [batch, tv, dim], which
// is the value if left out. Output [batch, tq, dim']; with return_attention_scores the tuple of it
// and the weights [batch, tq, tv], after dropout.
// Masks: values that the value's mask hides have no weight; where the query's is false the output
// is zero. The output's mask is the query's.
// ValueError for another structure and for ranks other than 3.
class AttentionBase : public Layer {
 public:
  using CallOptions = AttentionCallOptions;

  Tensors operator()(const Tensors& inputs, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;

 protected:
  template <class Options>
  AttentionBase(const char* class_name, Options& options) : Layer(class_name, options) {
    make_dropout(options.dropout, options.seed);
  }
  std::string caller() const { return class_name() + " " + name(); }
  // [batch, tq, tv].
  virtual Tensor scores(const Tensor& query, const Tensor& key) const = 0;
  void build_weights(const Specs& inputs) override;

 private:
  void make_dropout(double rate, std::optional<int64_t> seed);
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  std::optional<layers::Dropout> dropout_;
};

// score_mode "dot": scale (query . key), Luong et al. 2015.
// "concat": concat_score_weight * sum over dim of tanh(scale (query + key)).
// The weights `scale` (with use_scale) and `concat_score_weight` (with "concat") are scalars that
// start at 1.
class AttentionLayer final : public AttentionBase {
 public:
  static constexpr char kClassName[] = "Attention";
  using Options = AttentionOptions;
  // ValueError for another score_mode and unless 0 <= dropout <= 1.
  explicit AttentionLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  void build_weights(const Specs& inputs) override;
  Tensor scores(const Tensor& query, const Tensor& key) const override;

  const Options options_;
  Variable scale_, concat_score_weight_;
};

// score: sum over dim of scale * tanh(query + key), Bahdanau et al. 2015. With use_scale `scale` is
// a weight [dim].
class AdditiveAttentionLayer final : public AttentionBase {
 public:
  static constexpr char kClassName[] = "AdditiveAttention";
  using Options = AdditiveAttentionOptions;
  // ValueError unless 0 <= dropout <= 1.
  explicit AdditiveAttentionLayer(Options options)
      : AttentionBase(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError unless the last dimension of the query is known.
  void build_weights(const Specs& inputs) override;
  Tensor scores(const Tensor& query, const Tensor& key) const override;

  const Options options_;
  Variable scale_;
};

namespace layers {
using Attention = LayerHandle<AttentionLayer>;
using AdditiveAttention = LayerHandle<AdditiveAttentionLayer>;
}  // namespace layers

}  // namespace keel
