// ConvLSTM1D, ConvLSTM2D and ConvLSTM3D: LSTMs over sequences of sequences, images or volumes.
#pragma once

#include <optional>
#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/axes.h>
#include <keel/layers/recurrent/recurrent.h>

namespace keel {

// The options of ConvLSTMLayer.
template <int N>
struct ConvLSTMOptions {
  int64_t filters = 0;                                // required, > 0
  Lengths<N> kernel_size = 0;                         // required, > 0
  Lengths<N> strides = 1;                             // from one window to the next, > 0
  std::string padding = "valid";                      // "valid" or "same"
  std::string data_format = "channels_last";          // or "channels_first": channels are axis 2
  Lengths<N> dilation_rate = 1;                       // between neighbors in a window, > 0
  Activation activation = "tanh";                     // of the candidate and the output
  Activation recurrent_activation = "sigmoid";        // of the gates
  bool use_bias = true;                               // add the weight bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer recurrent_initializer = "orthogonal";   // initial values of recurrent_kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  bool unit_forget_bias = true;                       // the bias of the forget gate starts with 1
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer recurrent_regularizer = {};             // penalty on recurrent_kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Regularizer activity_regularizer = {};              // regularizes the output
  Constraint kernel_constraint = {};     // applied to kernel after each step; unset: none
  Constraint recurrent_constraint = {};  // applied to recurrent_kernel after each step; unset: none
  Constraint bias_constraint = {};       // applied to bias after each step; unset: none
  double dropout = 0.0;            // dropout rate of the inputs, in [0, 1]; the same for all steps
  double recurrent_dropout = 0.0;  // dropout rate of the state, in [0, 1]; the same for all steps
  std::optional<int64_t> seed = {};   // for both dropouts; unset: the next streams
  bool return_sequences = false;      // return the outputs of all steps, not only of the last
  bool return_state = false;          // also return the final states
  bool go_backwards = false;          // process the steps from the last to the first
  bool stateful = false;              // start each batch with the states of the previous one
  bool unroll = false;                // stored for Keras; has no effect
  bool zero_output_for_mask = false;  // output zeros at masked steps
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    recurrent_loop_fields(self, field);
    field("filters", self.filters);
    field("kernel_size", self.kernel_size);
    field("strides", self.strides);
    field("padding", self.padding);
    field("data_format", self.data_format);
    field("dilation_rate", self.dilation_rate);
    field("activation", self.activation);
    field("recurrent_activation", self.recurrent_activation);
    field("use_bias", self.use_bias);
    field("kernel_initializer", self.kernel_initializer);
    field("recurrent_initializer", self.recurrent_initializer);
    field("bias_initializer", self.bias_initializer);
    field("unit_forget_bias", self.unit_forget_bias);
    field("kernel_regularizer", self.kernel_regularizer);
    field("recurrent_regularizer", self.recurrent_regularizer);
    field("bias_regularizer", self.bias_regularizer);
    field("activity_regularizer", self.activity_regularizer);
    field("kernel_constraint", self.kernel_constraint);
    field("recurrent_constraint", self.recurrent_constraint);
    field("bias_constraint", self.bias_constraint);
    field("dropout", self.dropout);
    field("recurrent_dropout", self.recurrent_dropout);
    field("seed", self.seed);
  }
};

// An LSTM whose products are convolutions over N spatial axes (keras.layers.ConvLSTM1D, ConvLSTM2D,
// ConvLSTM3D; Shi et al. 2015). Let s = recurrent_activation, let * be the convolution of ConvLayer
// with this layer's options, and let # be one with padding "same" and without strides and dilation.
// The kernel W, the recurrent_kernel U and the bias b consist of blocks (i, f, c, o):
//   i = s(x * W_i + b_i + h_before # U_i),   f and o likewise,
//   c = f c_before + i activation(x * W_c + b_c + h_before # U_c)
//   h = o activation(c)
// The states are h and c; the output is h.
//
// Input: [batch, steps, spatial axes ..., channels]; output: [batch, windows ..., filters] or, with
// return_sequences, [batch, steps, windows ..., filters]. With channels_first, the channels are the
// first axis after the steps, the filters the first one before the windows. Weights: kernel
// [kernel_size ..., channels, 4 filters], recurrent_kernel [kernel_size ..., filters, 4 filters]
// and bias [4 filters]. See RecurrentLayer for masks and states.
template <ClassName kName, int N>
class ConvLSTMLayer final : public RecurrentLayer {
 public:
  static constexpr const char* kClassName = kName.text;
  using Options = ConvLSTMOptions<N>;
  // Throws ValueError for sizes that are not positive, if strides and dilation_rate are both above
  // 1, for dropout rates outside of [0, 1] and for unknown names.
  explicit ConvLSTMLayer(Options options);
  Config get_config() const override { return config_of(to_config(options_)); }

 private:
  const Options options_;
};

// The options of the layers of this family.
using ConvLSTM1DOptions = ConvLSTMOptions<1>;
using ConvLSTM2DOptions = ConvLSTMOptions<2>;
using ConvLSTM3DOptions = ConvLSTMOptions<3>;
// The layers of this family.
using ConvLSTM1DLayer = ConvLSTMLayer<"ConvLSTM1D", 1>;
using ConvLSTM2DLayer = ConvLSTMLayer<"ConvLSTM2D", 2>;
using ConvLSTM3DLayer = ConvLSTMLayer<"ConvLSTM3D", 3>;

namespace layers {
// Handles to the layers, under Keras's names.
using ConvLSTM1D = LayerHandle<ConvLSTM1DLayer>;
using ConvLSTM2D = LayerHandle<ConvLSTM2DLayer>;
using ConvLSTM3D = LayerHandle<ConvLSTM3DLayer>;
}  // namespace layers

}  // namespace keel
