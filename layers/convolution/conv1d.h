// Conv1D: learned filters over the steps of sequences (keras.layers.Conv1D).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/convolution/windows.h>
#include <keel/layers/layer.h>

namespace keel {

struct Conv1DOptions {
  int64_t filters = 0;       // required, > 0
  Length1D kernel_size = 0;  // required, > 0
  Length1D strides = 1;
  std::string padding = "valid";  // "valid", "same" or "causal"
  std::string data_format = "channels_last";
  Length1D dilation_rate = 1;
  int64_t groups = 1;  // divides the channels and the filters
  Activation activation = "linear";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer bias_initializer = "zeros";
  Regularizer kernel_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // of the result
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

// output[b, i, f] = activation(bias[f] + sum over k and c of
//                              kernel[k, c, f] x[b, i strides + k dilation_rate - before, c])
// with zeros beyond the ends: none of them ("valid"), evenly at both so that there are
// ceil(steps / strides) outputs ("same"), or before the first step only, so that no output looks
// ahead ("causal"). With groups, the filters of each see their share of the channels.
// Input [batch, steps, channels], output [batch, steps', filters]; with channels_first
// [batch, channels, steps] and [batch, filters, steps'].
// kernel is [kernel_size, channels / groups, filters], bias [filters].
class Conv1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Conv1D";
  using Options = Conv1DOptions;
  // ValueError for sizes that are not positive, filters that groups do not divide, strides and
  // dilation_rate both above 1, "causal" with channels_first, and unknown names.
  explicit Conv1DLayer(Options options);

  const Variable& kernel() const { return kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }      // idem, and if !use_bias
  Config get_config() const override { return to_config(options_); }

 private:
  std::string caller() const { return "Conv1D " + name(); }
  // ValueError unless the rank is 3 and the channels are known and divisible by groups.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const WindowOptions windows_;
  Variable kernel_, bias_;
};

namespace layers {
using Conv1D = LayerHandle<Conv1DLayer>;
}

}  // namespace keel
