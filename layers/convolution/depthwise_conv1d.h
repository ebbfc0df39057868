// DepthwiseConv1D: filters of their own for each channel (keras.layers.DepthwiseConv1D).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/convolution/windows.h>
#include <keel/layers/layer.h>

namespace keel {

struct DepthwiseConv1DOptions {
  Length1D kernel_size = 0;  // required, > 0
  Length1D strides = 1;
  std::string padding = "valid";  // "valid" or "same"
  int64_t depth_multiplier = 1;   // filters of a channel
  std::string data_format = "channels_last";
  Length1D dilation_rate = 1;
  Activation activation = "linear";
  bool use_bias = true;
  Initializer depthwise_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer depthwise_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the result
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

// output[b, i, c m + j] = activation(bias[c m + j] + sum over k of
//                                    kernel[k, c, j] x[b, i strides + k dilation_rate - before, c])
// with m = depth_multiplier, and zeros beyond the ends as Conv1D places them.
// Input [batch, steps, channels], output [batch, steps', channels m]; with channels_first the axes
// of steps and channels are exchanged. kernel is [kernel_size, channels, m], bias [channels m].
class DepthwiseConv1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "DepthwiseConv1D";
  using Options = DepthwiseConv1DOptions;
  // ValueError for sizes that are not positive, strides and dilation_rate both above 1, and unknown
  // names.
  explicit DepthwiseConv1DLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }      // idem, and if !use_bias
  Config get_config() const override { return to_config(options_); }

 private:
  std::string caller() const { return "DepthwiseConv1D " + name(); }
  // ValueError unless the rank is 3 and the channels are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const WindowOptions windows_;
  Variable kernel_, bias_;
};

namespace layers {
using DepthwiseConv1D = LayerHandle<DepthwiseConv1DLayer>;
}

}  // namespace keel
