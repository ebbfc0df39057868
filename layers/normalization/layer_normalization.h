// LayerNormalization: normalizes each sample by its own statistics
// (keras.layers.LayerNormalization; Ba et al. 2016).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of LayerNormalization.
struct LayerNormalizationOptions {
  Axes axis = -1;  // axes over which mean and variance are computed
  double epsilon = 1e-3;
  bool center = true;  // add beta
  bool scale = true;   // multiply by gamma
  // Compute gamma * x / sqrt(variance + epsilon); ignores center and scale.
  bool rms_scaling = false;
  Initializer beta_initializer = "zeros";
  Initializer gamma_initializer = "ones";
  Regularizer beta_regularizer = {};
  Regularizer gamma_regularizer = {};
  Constraint beta_constraint = {};
  Constraint gamma_constraint = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
    field("epsilon", self.epsilon);
    field("center", self.center);
    field("scale", self.scale);
    field("rms_scaling", self.rms_scaling);
    field("beta_initializer", self.beta_initializer);
    field("gamma_initializer", self.gamma_initializer);
    field("beta_regularizer", self.beta_regularizer);
    field("gamma_regularizer", self.gamma_regularizer);
    field("beta_constraint", self.beta_constraint);
    field("gamma_constraint", self.gamma_constraint);
  }
};

// Computes gamma * (x - mean) / sqrt(variance + epsilon) + beta, with the mean and biased variance
// over `axis`. Output has the shape and mask of the input; gamma and beta have the dimensions of
// the axes.
class LayerNormalizationLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "LayerNormalization";
  using Options = LayerNormalizationOptions;
  // Throws ValueError for epsilon < 0.
  explicit LayerNormalizationLayer(Options options);
  bool supports_masking() const override { return true; }
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the dimensions of the axes are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  Variable gamma_, beta_;
};

namespace layers {
using LayerNormalization = LayerHandle<LayerNormalizationLayer>;
}

}  // namespace keel
