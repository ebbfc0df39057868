// Conv1D, Conv2D and Conv3D: learned filters over sequences, images and volumes.
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of ConvLayer.
template <int N>
struct ConvOptions {
  int64_t filters = 0;                                // required, > 0
  Lengths<N> kernel_size = 0;                         // required, > 0
  Lengths<N> strides = 1;                             // from one window to the next, > 0
  std::string padding = "valid";                      // "valid", "same" or, for Conv1D, "causal"
  std::string data_format = "channels_last";          // or "channels_first": channels are axis 1
  Lengths<N> dilation_rate = 1;                       // between neighbors in a window, > 0
  int64_t groups = 1;                                 // must divide the channels and the filters
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
    field("filters", self.filters);
    field("kernel_size", self.kernel_size);
    field("strides", self.strides);
    field("padding", self.padding);
    field("data_format", self.data_format);
    field("dilation_rate", self.dilation_rate);
    field("groups", self.groups);
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

// A convolution over N spatial axes (keras.layers.Conv1D, Conv2D, Conv3D). For one axis it computes
//   output[b, i, f] = activation(bias[f] + sum over k and c of
//                                kernel[k, c, f] x[b, i strides + k dilation_rate - before, c])
// with zeros beyond the ends, and likewise for several. Padding "valid" adds no zeros. "same" adds
// them evenly at both ends so that there are ceil(size / strides) outputs. "causal" adds them
// before the first step only, so that no output depends on later steps. With groups, the filters of
// each group use only the channels of that group. Input: [batch, spatial axes ..., channels];
// output: [batch, windows ..., filters]. With channels_first, they are [batch, channels, spatial
// axes ...] and [batch, filters, windows ...]. Weights: kernel [kernel_size ..., channels / groups,
// filters] and bias [filters].
template <ClassName kName, int N>
class ConvLayer final : public OptionsLayer<ConvOptions<N>> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = ConvOptions<N>;
  // Throws ValueError for sizes that are not positive, for filters that are not divisible by
  // groups, if strides and dilation_rate are both above 1, for "causal" with channels_first, and
  // for unknown names.
  explicit ConvLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }      // empty until built, and if !use_bias

 private:
  using Base = OptionsLayer<Options>;
  using Base::options_;
  std::string caller() const { return str(kClassName, " ", this->name()); }
  // Throws ValueError unless the rank is N + 2 and the channels are known and divisible by groups.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  Variable kernel_, bias_;
};

// The options of the layers of this family.
using Conv1DOptions = ConvOptions<1>;
using Conv2DOptions = ConvOptions<2>;
using Conv3DOptions = ConvOptions<3>;
// The layers of this family.
using Conv1DLayer = ConvLayer<"Conv1D", 1>;
using Conv2DLayer = ConvLayer<"Conv2D", 2>;
using Conv3DLayer = ConvLayer<"Conv3D", 3>;

namespace layers {
// Handles to the layers, under Keras's names.
using Conv1D = LayerHandle<Conv1DLayer>;
using Conv2D = LayerHandle<Conv2DLayer>;
using Conv3D = LayerHandle<Conv3DLayer>;
}  // namespace layers

}  // namespace keel
