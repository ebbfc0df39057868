// SimpleRNN and SimpleRNNCell: a fully connected recurrent layer whose output is its state.
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/recurrent/recurrent.h>

namespace keel {

// Options of SimpleRNNCell.
struct SimpleRNNCellOptions {
  int64_t units = 0;                                  // required, > 0
  Activation activation = "tanh";                     // of the output
  bool use_bias = true;                               // add the weight bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer recurrent_initializer = "orthogonal";   // initial values of recurrent_kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
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
  }
};

// SimpleRNNCell: one step of a SimpleRNN (keras.layers.SimpleRNNCell).
// Computes h = activation(x . kernel + bias + h_before . recurrent_kernel). The only state is h.
// Shapes: kernel [in, units], recurrent_kernel [units, units], bias [units]. See RecurrentCell.
class SimpleRNNCellLayer final : public OptionsLayer<SimpleRNNCellOptions, RecurrentCell> {
 public:
  static constexpr char kClassName[] = "SimpleRNNCell";
  explicit SimpleRNNCellLayer(Options options);

  Step make_step(const Masks& masks) const override;

 private:
  int gates() const override { return 1; }
};

// Options of SimpleRNN.
struct SimpleRNNOptions {
  int64_t units = 0;                                  // required, > 0
  Activation activation = "tanh";                     // of the output
  bool use_bias = true;                               // add the weight bias
  Initializer kernel_initializer = "glorot_uniform";  // initial values of kernel
  Initializer recurrent_initializer = "orthogonal";   // initial values of recurrent_kernel
  Initializer bias_initializer = "zeros";             // initial values of bias
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
  }
};

// SimpleRNN: a fully connected recurrent layer whose output is its state (keras.layers.SimpleRNN).
// Runs a SimpleRNNCell over the steps of sequences. See SimpleRNNCell for the formula and the
// weights, and RecurrentLayer for inputs, outputs and masks.
class SimpleRNNLayer final : public RecurrentLayer {
 public:
  static constexpr char kClassName[] = "SimpleRNN";
  using Options = SimpleRNNOptions;
  // Throws ValueError unless units > 0 and the dropout rates are in [0, 1].
  explicit SimpleRNNLayer(Options options);
  Config get_config() const override { return config_of(to_config(options_)); }

 private:
  const Options options_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using SimpleRNNCell = LayerHandle<SimpleRNNCellLayer>;
using SimpleRNN = LayerHandle<SimpleRNNLayer>;
}  // namespace layers

}  // namespace keel
