// LSTM and LSTMCell: long short-term memory (Hochreiter and Schmidhuber 1997).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/recurrent/recurrent.h>

namespace keel {

// Options of LSTMCell.
struct LSTMCellOptions {
  int64_t units = 0;                                  // required, > 0
  Activation activation = "tanh";                     // of the output
  Activation recurrent_activation = "sigmoid";        // of the gates
  bool use_bias = true;                               // add the weight bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer recurrent_initializer = "orthogonal";   // initial values of recurrent_kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  bool unit_forget_bias = true;                       // start with a bias of 1 for the forget gate
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer recurrent_regularizer = {};             // penalty on recurrent_kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Constraint kernel_constraint = {};     // applied to kernel after each step; unset: none
  Constraint recurrent_constraint = {};  // applied to recurrent_kernel after each step; unset: none
  Constraint bias_constraint = {};       // applied to bias after each step; unset: none
  double dropout = 0.0;                  // dropout rate of the inputs, in [0, 1]
  double recurrent_dropout = 0.0;        // dropout rate of the state, in [0, 1]
  std::optional<int64_t> seed = {};      // for both dropouts; unset: the next streams
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    recurrent_cell_fields(self, field);
    field("recurrent_activation", self.recurrent_activation);
    field("unit_forget_bias", self.unit_forget_bias);
  }
};

// LSTMCell: one step of an LSTM (keras.layers.LSTMCell).
// Let s = recurrent_activation and let (i, f, g, o) be the blocks of `units` columns of x . kernel
// + bias + h_before . recurrent_kernel:
//   c = s(f) c_before + s(i) activation(g)
//   h = s(o) activation(c)
// The states are h and c. Shapes: kernel [in, 4 units], recurrent_kernel [units, 4 units], bias [4
// units]. With unit_forget_bias the block f of the bias is initialized to 1. See RecurrentCell.
class LSTMCellLayer final : public OptionsLayer<LSTMCellOptions, RecurrentCell> {
 public:
  static constexpr char kClassName[] = "LSTMCell";
  explicit LSTMCellLayer(Options options);

  Step make_step(const Masks& masks) const override;
  int state_count() const override { return 2; }

 private:
  int gates() const override { return 4; }
  void build_weights(const Specs& inputs) override;
};

// Options of LSTM.
struct LSTMOptions {
  int64_t units = 0;                                  // required, > 0
  Activation activation = "tanh";                     // of the output
  Activation recurrent_activation = "sigmoid";        // of the gates
  bool use_bias = true;                               // add the weight bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer recurrent_initializer = "orthogonal";   // initial values of recurrent_kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
  bool unit_forget_bias = true;                       // start with a bias of 1 for the forget gate
  Regularizer kernel_regularizer = {};                // penalty on kernel; unset: none
  Regularizer recurrent_regularizer = {};             // penalty on recurrent_kernel; unset: none
  Regularizer bias_regularizer = {};                  // penalty on bias; unset: none
  Regularizer activity_regularizer = {};              // regularizes the output
  Constraint kernel_constraint = {};     // applied to kernel after each step; unset: none
  Constraint recurrent_constraint = {};  // applied to recurrent_kernel after each step; unset: none
  Constraint bias_constraint = {};       // applied to bias after each step; unset: none
  double dropout = 0.0;            // dropout rate of the inputs, in [0, 1]; one mask for all steps
  double recurrent_dropout = 0.0;  // dropout rate of the state, in [0, 1]; one mask for all steps
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
    recurrent_cell_fields(self, field);
    field("activity_regularizer", self.activity_regularizer);
    field("recurrent_activation", self.recurrent_activation);
    field("unit_forget_bias", self.unit_forget_bias);
  }
};

// LSTM: long short-term memory (keras.layers.LSTM; Hochreiter and Schmidhuber 1997).
// Runs an LSTMCell over the steps of sequences. See LSTMCell for the formula and the weights, and
// RecurrentLayer for inputs, outputs and masks.
class LSTMLayer final : public RecurrentLayer {
 public:
  static constexpr char kClassName[] = "LSTM";
  using Options = LSTMOptions;
  // Throws ValueError unless units > 0 and the dropout rates are in [0, 1].
  explicit LSTMLayer(Options options);
  Config get_config() const override { return config_of(to_config(options_)); }

 private:
  const Options options_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using LSTMCell = LayerHandle<LSTMCellLayer>;
using LSTM = LayerHandle<LSTMLayer>;
}  // namespace layers

}  // namespace keel
