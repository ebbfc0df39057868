// Layers that combine features of a recommendation model: DotInteraction and FeatureCross.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/layer.h>
#include <keel/layers/layer_types.h>

namespace keel {

// Options of DotInteraction.
struct DotInteractionOptions {
  bool self_interaction = false;  // include the product of each feature with itself
  bool skip_gather = false;       // return the whole matrix, with zeros above the diagonal
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("self_interaction", self.self_interaction);
    field("skip_gather", self.skip_gather);
  }
};

// Computes the dot products x_i . x_j of all pairs of features i > j (i >= j with self_interaction)
// in the order (1,0), (2,0), (2,1), ... of DLRM (keras_rs.layers.DotInteraction; Naumov et al.
// 2019). Input: a list of n tensors [batch, dim], or one tensor [batch, n, dim]. Output: [batch,
// pairs]. With skip_gather, the output is [batch, n
// * n], the matrix of products in row-major order with zeros where there is no pair.
class DotInteractionLayer final : public OptionsLayer<DotInteractionOptions, Layer> {
 public:
  static constexpr char kClassName[] = "DotInteraction";
  explicit DotInteractionLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  const Options& options() const { return options_; }  // those of the constructor

 private:
  // Throws ValueError for shapes other than the above.
  Tensors call(const Tensors& inputs, const CallContext& context) override;
};

// Options of FeatureCross.
struct FeatureCrossOptions {
  std::optional<int64_t> projection_dim = {};         // rank of W = U V; unset: W has full rank
  double diag_scale = 0.0;                            // >= 0, added to the diagonal of W
  bool use_bias = true;                               // add the weight `bias`
  Activation pre_activation = "linear";               // applied to W x + bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  Regularizer kernel_regularizer = {};                // applied to kernel and down_kernel
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
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

// A cross layer of DCN v2 (keras_rs.layers.FeatureCross; Wang et al. 2021).
// Computes x0 * (pre_activation(W x + bias) + diag_scale * x) + x. Input: a list of x0 and x, both
// [batch, ..., dim], or x0 alone, in which case x = x0. The output has the same shape. Weights:
// kernel [dim, dim] and bias [dim]. With projection_dim p, there is also down_kernel [dim, p], and
// kernel is [p, dim].
class FeatureCrossLayer final : public OptionsLayer<FeatureCrossOptions, Layer>,
                                public WeightAttributes {
 public:
  static constexpr char kClassName[] = "FeatureCross";
  // Throws ValueError unless diag_scale >= 0 and projection_dim > 0.
  explicit FeatureCrossLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  // Returns an empty handle before the layer is built, and at full rank.
  const Variable& down_kernel() const { return down_kernel_; }
  const Variable& bias() const { return bias_; }  // empty until built, and if !use_bias
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  const Options& options() const { return options_; }  // those of the constructor
  // Returns the names of keras_rs's Dense sublayers.
  std::vector<std::string> weight_attributes() const override;

 private:
  // Throws ValueError unless x0 and x have the same shape with a known last dimension.
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  Variable down_kernel_, kernel_, bias_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using DotInteraction = LayerHandle<DotInteractionLayer>;
using FeatureCross = LayerHandle<FeatureCrossLayer>;
}  // namespace layers

}  // namespace keel
