// Dense: a fully connected layer (keras.layers.Dense).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of DenseLayer.
struct DenseOptions {
  int64_t units = 0;  // required, > 0
  Activation activation = "linear";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // applied to the output
  Constraint kernel_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("units", self.units);
    field("activation", self.activation);
    field("use_bias", self.use_bias);
    field("kernel_initializer", self.kernel_initializer);
    field("bias_initializer", self.bias_initializer);
    field("kernel_regularizer", self.kernel_regularizer);
    field("bias_regularizer", self.bias_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("kernel_constraint", self.kernel_constraint);
    field("bias_constraint", self.bias_constraint);
  }
};

// Computes activation(x . kernel + bias) over the last axis. Input: [batch, ..., in]; output:
// [batch, ..., units]. Weights: kernel [in, units] and bias [units]. Numeric inputs of another
// dtype are cast to the layer's dtype.
class DenseLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Dense";
  using Options = DenseOptions;
  // Throws ValueError unless units > 0.
  explicit DenseLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }      // empty until built, and if !use_bias
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the rank is at least 2 and the last dimension is known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
  Variable kernel_, bias_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Dense = LayerHandle<DenseLayer>;
}  // namespace layers

}  // namespace keel
