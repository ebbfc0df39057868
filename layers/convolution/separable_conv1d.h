// SeparableConv1D: a depthwise convolution followed by a linear combination of channels
// (keras.layers.SeparableConv1D).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/convolution/windows.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of SeparableConv1DLayer.
struct SeparableConv1DOptions {
  int64_t filters = 0;       // required, > 0
  Length1D kernel_size = 0;  // required, > 0
  Length1D strides = 1;
  std::string padding = "valid";  // "valid" or "same"
  std::string data_format = "channels_last";
  Length1D dilation_rate = 1;
  int64_t depth_multiplier = 1;  // filters per channel
  Activation activation = "linear";
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer pointwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer pointwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // applied to the output
  Constraint depthwise_constraint = {};
  Constraint pointwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("filters", self.filters);
    field("kernel_size", self.kernel_size);
    field("strides", self.strides);
    field("padding", self.padding);
    field("data_format", self.data_format);
    field("dilation_rate", self.dilation_rate);
    field("depth_multiplier", self.depth_multiplier);
    field("activation", self.activation);
    field("use_bias", self.use_bias);
    field("depthwise_initializer", self.depthwise_initializer);
    field("pointwise_initializer", self.pointwise_initializer);
    field("bias_initializer", self.bias_initializer);
    field("depthwise_regularizer", self.depthwise_regularizer);
    field("pointwise_regularizer", self.pointwise_regularizer);
    field("bias_regularizer", self.bias_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("depthwise_constraint", self.depthwise_constraint);
    field("pointwise_constraint", self.pointwise_constraint);
    field("bias_constraint", self.bias_constraint);
  }
};

// Computes y as DepthwiseConv1D without bias and activation, and then at each step
//   output[f] = activation(bias[f] + sum over c of pointwise_kernel[0, c, f] y[c])
// Input: [batch, steps, channels]; output: [batch, steps', filters]. With channels_first, the axes
// of steps and channels are swapped. Weights: depthwise_kernel [kernel_size, channels,
// depth_multiplier], pointwise_kernel [1, channels depth_multiplier, filters] and bias [filters].
class SeparableConv1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "SeparableConv1D";
  using Options = SeparableConv1DOptions;
  // Throws ValueError for sizes that are not positive, if strides and dilation_rate are both above
  // 1, and for unknown names.
  explicit SeparableConv1DLayer(Options options);

  const Variable& depthwise_kernel() const { return depthwise_kernel_; }  // empty until built
  const Variable& pointwise_kernel() const { return pointwise_kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }  // empty until built, and if !use_bias
  Config get_config() const override { return to_config(options_); }

 private:
  std::string caller() const { return "SeparableConv1D " + name(); }
  // Throws ValueError unless the rank is 3 and the channels are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const WindowOptions windows_;
  Variable depthwise_kernel_, pointwise_kernel_, bias_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using SeparableConv1D = LayerHandle<SeparableConv1DLayer>;
}  // namespace layers

}  // namespace keel
