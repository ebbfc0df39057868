// Convolutions that filter each channel separately: DepthwiseConv1D and 2D, SeparableConv1D and 2D.
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of DepthwiseConvLayer.
template <int N>
struct DepthwiseConvOptions {
  Lengths<N> kernel_size = 0;                            // required, > 0
  Lengths<N> strides = 1;                                // from one window to the next, > 0
  std::string padding = "valid";                         // "valid" or "same"
  int64_t depth_multiplier = 1;                          // filters per channel
  std::string data_format = "channels_last";             // or "channels_first": channels are axis 1
  Lengths<N> dilation_rate = 1;                          // between neighbors in a window, > 0
  Activation activation = "linear";                      // applied to the result
  bool use_bias = true;                                  // add the weight bias
  Initializer depthwise_initializer = "glorot_uniform";  // initial values of depthwise kernel
  Initializer bias_initializer = "zeros";                // initial values of bias
  Regularizer depthwise_regularizer = {};                // penalty on depthwise kernel; unset: none
  Regularizer bias_regularizer = {};                     // penalty on bias; unset: none
  Regularizer activity_regularizer = {};                 // applied to the output
  Constraint depthwise_constraint = {};  // applied to depthwise kernel after each step; unset: none
  Constraint bias_constraint = {};       // applied to bias after each step; unset: none
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
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

// Separate filters for each channel, over N spatial axes (keras.layers.DepthwiseConv1D and
// DepthwiseConv2D). For one axis it computes
//   output[b, i, c m + j] = activation(bias[c m + j] + sum over k of
//                                      kernel[k, c, j] x[b, i strides + k dilation_rate - before,
//                                      c])
// where m = depth_multiplier, with zeros beyond the ends in the same places as in ConvLayer.
// Input: [batch, spatial axes ..., channels]; output: [batch, windows ..., channels m]. With
// channels_first, channels are axis 1 of both. Weights: kernel [kernel_size ..., channels, m] and
// bias [channels m].
template <ClassName kName, int N>
class DepthwiseConvLayer final : public OptionsLayer<DepthwiseConvOptions<N>> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = DepthwiseConvOptions<N>;
  // Throws ValueError for sizes that are not positive, if strides and dilation_rate are both above
  // 1, and for unknown names.
  explicit DepthwiseConvLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }      // empty until built, and if !use_bias

 private:
  using Base = OptionsLayer<Options>;
  using Base::options_;
  std::string caller() const { return str(kClassName, " ", this->name()); }
  // Throws ValueError unless the rank is N + 2 and the channels are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  Variable kernel_, bias_;
};

// The options of the depthwise layers.
using DepthwiseConv1DOptions = DepthwiseConvOptions<1>;
using DepthwiseConv2DOptions = DepthwiseConvOptions<2>;
// The depthwise layers.
using DepthwiseConv1DLayer = DepthwiseConvLayer<"DepthwiseConv1D", 1>;
using DepthwiseConv2DLayer = DepthwiseConvLayer<"DepthwiseConv2D", 2>;

// The options of SeparableConvLayer.
template <int N>
struct SeparableConvOptions {
  int64_t filters = 0;                                   // required, > 0
  Lengths<N> kernel_size = 0;                            // required, > 0
  Lengths<N> strides = 1;                                // from one window to the next, > 0
  std::string padding = "valid";                         // "valid" or "same"
  std::string data_format = "channels_last";             // or "channels_first": channels are axis 1
  Lengths<N> dilation_rate = 1;                          // between neighbors in a window, > 0
  int64_t depth_multiplier = 1;                          // filters per channel
  Activation activation = "linear";                      // applied to the result
  bool use_bias = true;                                  // add the weight bias
  Initializer depthwise_initializer = "glorot_uniform";  // initial values of depthwise kernel
  Initializer pointwise_initializer = "glorot_uniform";  // initial values of pointwise_kernel
  Initializer bias_initializer = "zeros";                // initial values of bias
  Regularizer depthwise_regularizer = {};                // penalty on depthwise kernel; unset: none
  Regularizer pointwise_regularizer = {};                // penalty on pointwise_kernel; unset: none
  Regularizer bias_regularizer = {};                     // penalty on bias; unset: none
  Regularizer activity_regularizer = {};                 // applied to the output
  Constraint depthwise_constraint = {};  // applied to depthwise kernel after each step; unset: none
  Constraint pointwise_constraint = {};  // applied to pointwise_kernel after each step; unset: none
  Constraint bias_constraint = {};       // applied to bias after each step; unset: none
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
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

// A depthwise convolution followed by a linear combination of channels, over N spatial axes
// (keras.layers.SeparableConv1D and SeparableConv2D). Computes y as DepthwiseConvLayer without bias
// and activation, and then at each place
//   output[f] = activation(bias[f] + sum over c of pointwise_kernel[c, f] y[c])
// Input: [batch, spatial axes ..., channels]; output: [batch, windows ..., filters]. With
// channels_first, channels are axis 1 of both. Weights: depthwise_kernel [kernel_size ...,
// channels, depth_multiplier], pointwise_kernel [1 ..., channels depth_multiplier, filters] and
// bias [filters].
template <ClassName kName, int N>
class SeparableConvLayer final : public OptionsLayer<SeparableConvOptions<N>> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = SeparableConvOptions<N>;
  // Throws ValueError for sizes that are not positive, if strides and dilation_rate are both above
  // 1, and for unknown names.
  explicit SeparableConvLayer(Options options);

  const Variable& depthwise_kernel() const { return depthwise_kernel_; }  // empty until built
  const Variable& pointwise_kernel() const { return pointwise_kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }  // empty until built, and if !use_bias

 private:
  using Base = OptionsLayer<Options>;
  using Base::options_;
  std::string caller() const { return str(kClassName, " ", this->name()); }
  // Throws ValueError unless the rank is N + 2 and the channels are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  Variable depthwise_kernel_, pointwise_kernel_, bias_;
};

// The options of the separable layers.
using SeparableConv1DOptions = SeparableConvOptions<1>;
using SeparableConv2DOptions = SeparableConvOptions<2>;
// The separable layers.
using SeparableConv1DLayer = SeparableConvLayer<"SeparableConv1D", 1>;
using SeparableConv2DLayer = SeparableConvLayer<"SeparableConv2D", 2>;

namespace layers {
// Handles to the layers, under Keras's names.
using DepthwiseConv1D = LayerHandle<DepthwiseConv1DLayer>;
using DepthwiseConv2D = LayerHandle<DepthwiseConv2DLayer>;
using SeparableConv1D = LayerHandle<SeparableConv1DLayer>;
using SeparableConv2D = LayerHandle<SeparableConv2DLayer>;
}  // namespace layers

}  // namespace keel
