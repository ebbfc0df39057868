// TernaryDense: a matrix product with a kernel of -1, 0 and 1 (keras.layers).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of TernaryDenseLayer.
struct TernaryDenseOptions {
  int64_t units = 0;                                  // required, > 0
  std::optional<double> threshold = {};               // >= 0; unset: half the mean of |kernel|
  Activation activation = "linear";                   // applied to the result
  bool use_bias = true;                               // add the weight bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Regularizer activity_regularizer = {};              // applied to the output
  Constraint kernel_constraint = {};  // applied to kernel after each step; unset: none
  Constraint bias_constraint = {};    // applied to bias after each step; unset: none
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("units", self.units);
    field("threshold", self.threshold);
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

// Computes activation(scale * (x . t) + bias) over the last axis, where t is 0 where |kernel| is at
// most the threshold and sign(kernel) elsewhere. Without a threshold, the scale is the mean of
// |kernel| (Ma et al. 2024, "The Era of 1-bit LLMs"); with one it is 1. The kernel stays a trained
// float weight: its gradient passes t as if t were the kernel.
//
// Input: [batch, ..., in]; output: [batch, ..., units]. Weights: kernel [in, units] and bias
// [units]. Numeric inputs of another dtype are cast to the layer's dtype.
class TernaryDenseLayer final : public TensorLayer {
 public:
  using Options = TernaryDenseOptions;
  static constexpr char kClassName[] = "TernaryDense";
  // Throws ValueError unless units > 0 and threshold >= 0.
  explicit TernaryDenseLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }      // empty until built, and without a bias

  bool supports_masking() const override { return true; }
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
using TernaryDense = LayerHandle<TernaryDenseLayer>;
}  // namespace layers

}  // namespace keel
