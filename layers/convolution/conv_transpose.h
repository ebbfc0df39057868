// Conv1DTranspose, Conv2DTranspose and Conv3DTranspose: learned filters that enlarge sequences,
// images and volumes.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of ConvTransposeLayer.
template <int N>
struct ConvTransposeOptions {
  int64_t filters = 0;                                // required, > 0
  Lengths<N> kernel_size = 0;                         // required, > 0
  Lengths<N> strides = 1;                             // outputs for each step of the input, > 0
  std::string padding = "valid";                      // "valid" or "same"
  std::optional<Lengths<N>> output_padding = {};      // see ConvTransposeLayer, >= 0
  std::string data_format = "channels_last";          // or "channels_first": channels are axis 1
  Lengths<N> dilation_rate = 1;                       // between neighbors in a window, > 0
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
    field("output_padding", self.output_padding);
    field("data_format", self.data_format);
    field("dilation_rate", self.dilation_rate);
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

// A transposed convolution over N spatial axes (keras.layers.Conv1DTranspose, Conv2DTranspose,
// Conv3DTranspose): the gradient of a convolution in its input, plus a bias. Along each axis, step
// i of the input adds to the outputs i strides + k dilation_rate - before.
//
// With span = (kernel_size - 1) dilation_rate + 1, the number of outputs for `size` steps is
//   padding  output_padding unset                    output_padding p
//   "valid"  (size - 1) strides + max(span, strides)  (size - 1) strides + span + p
//   "same"   size strides                             (size - 1) strides + span % 2 + p
//
// Input: [batch, spatial axes ..., channels]; output: [batch, outputs ..., filters]. With
// channels_first, they are [batch, channels, spatial axes ...] and [batch, filters, outputs ...].
// Weights: kernel [kernel_size ..., filters, channels] and bias [filters].
template <ClassName kName, int N>
class ConvTransposeLayer final : public OptionsLayer<ConvTransposeOptions<N>> {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = ConvTransposeOptions<N>;
  // Throws ValueError for sizes that are not positive, if strides and dilation_rate are both above
  // 1, for a negative output_padding, and for unknown names.
  explicit ConvTransposeLayer(Options options);

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

// The options of the layers of this family.
using Conv1DTransposeOptions = ConvTransposeOptions<1>;
using Conv2DTransposeOptions = ConvTransposeOptions<2>;
using Conv3DTransposeOptions = ConvTransposeOptions<3>;
// The layers of this family.
using Conv1DTransposeLayer = ConvTransposeLayer<"Conv1DTranspose", 1>;
using Conv2DTransposeLayer = ConvTransposeLayer<"Conv2DTranspose", 2>;
using Conv3DTransposeLayer = ConvTransposeLayer<"Conv3DTranspose", 3>;

namespace layers {
// Handles to the layers, under Keras's names.
using Conv1DTranspose = LayerHandle<Conv1DTransposeLayer>;
using Conv2DTranspose = LayerHandle<Conv2DTransposeLayer>;
using Conv3DTranspose = LayerHandle<Conv3DTransposeLayer>;
}  // namespace layers

}  // namespace keel
