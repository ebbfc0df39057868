// GRU and GRUCell: gated recurrent unit (Cho et al. 2014).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/recurrent/recurrent.h>

namespace keel {

// Options of GRUCell.
struct GRUCellOptions {
  int64_t units = 0;                                  // required, > 0
  Activation activation = "tanh";                     // of the output
  Activation recurrent_activation = "sigmoid";        // of the gates
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
  bool reset_after = true;           // apply the reset gate after the product with recurrent_kernel
  std::optional<int64_t> seed = {};  // for both dropouts; unset: the next streams
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    recurrent_cell_fields(self, field);
    field("recurrent_activation", self.recurrent_activation);
    field("reset_after", self.reset_after);
  }
};

// GRUCell: one step of a GRU (keras.layers.GRUCell).
// Let s = recurrent_activation. The kernel W, the recurrent_kernel U, and the biases b of the input
// and d of the state each consist of blocks (z, r, g):
//   z = s(x W_z + b_z + h_before U_z + d_z),   r = s(x W_r + b_r + h_before U_r + d_r)
//   g = activation(x W_g + b_g + r (h_before U_g + d_g))  if reset_after, otherwise
//   g = activation(x W_g + b_g + (r h_before) U_g)
//   h = z h_before + (1 - z) g
// The only state is h. Shapes: kernel [in, 3 units], recurrent_kernel [units, 3 units]. The bias is
// [2, 3 units] with rows b and d or, without reset_after, [3 units] with b only. See RecurrentCell.
class GRUCellLayer final : public OptionsLayer<GRUCellOptions, RecurrentCell> {
 public:
  static constexpr char kClassName[] = "GRUCell";
  explicit GRUCellLayer(Options options);

  Step make_step(const Masks& masks) const override;

 private:
  int gates() const override { return 3; }
  Shape bias_shape() const override;
  Tensor input_bias() const override;
  // Without reset_after: computes the gates z and r first, then the candidate from r h_before.
  Step make_step_before(const Masks& masks) const;
};

// Options of GRU.
struct GRUOptions {
  int64_t units = 0;                                  // required, > 0
  Activation activation = "tanh";                     // of the output
  Activation recurrent_activation = "sigmoid";        // of the gates
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
  std::optional<int64_t> seed = {};  // for both dropouts; unset: the next streams
  bool return_sequences = false;     // return the outputs of all steps, not only of the last
  bool return_state = false;         // also return the final states
  bool go_backwards = false;         // process the steps from the last to the first
  bool stateful = false;             // start each batch with the states of the previous one
  bool unroll = false;               // stored for Keras; has no effect
  bool reset_after = true;           // apply the reset gate after the product with recurrent_kernel
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
    field("reset_after", self.reset_after);
  }
};

// GRU: gated recurrent unit (keras.layers.GRU; Cho et al. 2014).
// Runs a GRUCell over the steps of sequences. See GRUCell for the formula and the weights, and
// RecurrentLayer for inputs, outputs and masks.
class GRULayer final : public RecurrentLayer {
 public:
  static constexpr char kClassName[] = "GRU";
  using Options = GRUOptions;
  // Throws ValueError unless units > 0 and the dropout rates are in [0, 1].
  explicit GRULayer(Options options);
  Config get_config() const override { return config_of(to_config(options_)); }

 private:
  const Options options_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using GRUCell = LayerHandle<GRUCellLayer>;
using GRU = LayerHandle<GRULayer>;
}  // namespace layers

}  // namespace keel
