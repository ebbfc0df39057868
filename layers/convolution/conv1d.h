// Conv1D: learned filters over the steps of sequences (keras.layers.Conv1D).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/convolution/windows.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of Conv1DLayer.
struct Conv1DOptions {
  int64_t filters = 0;       // required, > 0
  Length1D kernel_size = 0;  // required, > 0
  Length1D strides = 1;
  std::string padding = "valid";  // "valid", "same" or "causal"
  std::string data_format = "channels_last";
  Length1D dilation_rate = 1;
  int64_t groups = 1;  // must divide the channels and the filters
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

// Computes
//   output[b, i, f] = activation(bias[f] + sum over k and c of
//                                kernel[k, c, f] x[b, i strides + k dilation_rate - before, c])
// with zeros beyond the ends. Padding "valid" adds no zeros. "same" adds them evenly at both ends
// so that there are ceil(steps / strides) outputs. "causal" adds them before the first step only,
// so that no output depends on later steps. With groups, the filters of each group use only the
// channels of that group.
// Input: [batch, steps, channels]; output: [batch, steps', filters]. With channels_first, they are
// [batch, channels, steps] and [batch, filters, steps'].
// Weights: kernel [kernel_size, channels / groups, filters] and bias [filters].
class Conv1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Conv1D";
  using Options = Conv1DOptions;
  // Throws ValueError for sizes that are not positive, for filters that are not divisible by
  // groups, if strides and dilation_rate are both above 1, for "causal" with channels_first, and
  // for unknown names.
  explicit Conv1DLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }      // empty until built, and if !use_bias
  Config get_config() const override { return to_config(options_); }

 private:
  std::string caller() const { return "Conv1D " + name(); }
  // Throws ValueError unless the rank is 3 and the channels are known and divisible by groups.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const WindowOptions windows_;
  Variable kernel_, bias_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Conv1D = LayerHandle<Conv1DLayer>;
}  // namespace layers

}  // namespace keel
