// DepthwiseConv1D: separate filters for each channel (keras.layers.DepthwiseConv1D).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/convolution/windows.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of DepthwiseConv1DLayer.
struct DepthwiseConv1DOptions {
  Length1D kernel_size = 0;  // required, > 0
  Length1D strides = 1;
  std::string padding = "valid";  // "valid" or "same"
  int64_t depth_multiplier = 1;   // filters per channel
  std::string data_format = "channels_last";
  Length1D dilation_rate = 1;
  Activation activation = "linear";
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // applied to the output
  Constraint depthwise_constraint = {};
  Constraint bias_constraint = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("kernel_size", self.kernel_size);
    field("strides", self.strides);
    field("padding", self.padding);
    field("depth_multiplier", self.depth_multiplier);
    field("data_format", self.data_format);
    field("dilation_rate", self.dilation_rate);
    field("activation", self.activation);
    field("use_bias", self.use_bias);
    field("depthwise_initializer", self.depthwise_initializer);
    field("bias_initializer", self.bias_initializer);
    field("depthwise_regularizer", self.depthwise_regularizer);
    field("bias_regularizer", self.bias_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("depthwise_constraint", self.depthwise_constraint);
    field("bias_constraint", self.bias_constraint);
  }
};

// Computes
//   output[b, i, c m + j] = activation(bias[c m + j] + sum over k of
//                                      kernel[k, c, j] x[b, i strides + k dilation_rate - before,
//                                      c])
// where m = depth_multiplier, with zeros beyond the ends in the same places as in Conv1D.
// Input: [batch, steps, channels]; output: [batch, steps', channels m]. With channels_first, the
// axes of steps and channels are swapped. Weights: kernel [kernel_size, channels, m] and bias
// [channels m].
class DepthwiseConv1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "DepthwiseConv1D";
  using Options = DepthwiseConv1DOptions;
  // Throws ValueError for sizes that are not positive, if strides and dilation_rate are both above
  // 1, and for unknown names.
  explicit DepthwiseConv1DLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }      // empty until built, and if !use_bias
  Config get_config() const override { return to_config(options_); }

 private:
  std::string caller() const { return "DepthwiseConv1D " + name(); }
  // Throws ValueError unless the rank is 3 and the channels are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const WindowOptions windows_;
  Variable kernel_, bias_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using DepthwiseConv1D = LayerHandle<DepthwiseConv1DLayer>;
}  // namespace layers

}  // namespace keel
