// FeatureCross: a cross layer of DCN-v2 (keras_rs.layers.FeatureCross; Wang et al. 2021).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/layer.h>
#include <keel/layers/sublayer_attributes.h>

namespace keel {

// The options of FeatureCrossLayer.
struct FeatureCrossOptions {
  std::optional<int64_t> projection_dim = {};  // rank of W = U V; unset: W has full rank
  double diag_scale = 0.0;                     // >= 0, added to the diagonal of W
  bool use_bias = true;
  Activation pre_activation = "linear";  // applied to W x + bias
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};  // applied to kernel and down_kernel
  Regularizer bias_regularizer = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("projection_dim", self.projection_dim);
    field("diag_scale", self.diag_scale);
    field("use_bias", self.use_bias);
    field("pre_activation", self.pre_activation);
    field("kernel_initializer", self.kernel_initializer);
    field("bias_initializer", self.bias_initializer);
    field("kernel_regularizer", self.kernel_regularizer);
    field("bias_regularizer", self.bias_regularizer);
  }
};

// Computes x0 * (pre_activation(W x + bias) + diag_scale * x) + x. Input: a list of x0 and x, both
// [batch, ..., dim], or x0 alone, in which case x = x0. The output has the same shape. Weights:
// kernel [dim, dim] and bias [dim]. With projection_dim p, there is also down_kernel [dim, p], and
// kernel is [p, dim].
// down_kernel [dim, p], and kernel is [p, dim].
class FeatureCrossLayer final : public Layer, public WeightAttributes {
 public:
  static constexpr char kClassName[] = "FeatureCross";
  using Options = FeatureCrossOptions;
  // Throws ValueError unless diag_scale >= 0 and projection_dim > 0.
  explicit FeatureCrossLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  // Returns an empty handle before the layer is built, and at full rank.
  const Variable& down_kernel() const { return down_kernel_; }
  const Variable& bias() const { return bias_; }  // empty until built, and if !use_bias
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }
  const Options& options() const { return options_; }
  // Returns the names of keras_rs's Dense sublayers.
  std::vector<std::string> weight_attributes() const override;

 private:
  // Throws ValueError unless x0 and x have the same shape with a known last dimension.
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Options options_;
  Variable down_kernel_, kernel_, bias_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using FeatureCross = LayerHandle<FeatureCrossLayer>;
}  // namespace layers

}  // namespace keel
