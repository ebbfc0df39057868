// LSTM: long short-term memory (keras.layers.LSTM; Hochreiter and Schmidhuber 1997).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/recurrent/recurrent_layer.h>

namespace keel {

// Options of LSTM.
struct LSTMOptions {
  int64_t units = 0;  // required, > 0
  Activation activation = "tanh";
  Activation recurrent_activation = "sigmoid";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
  bool unit_forget_bias = true;
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Regularizer activity_regularizer = {};  // regularizes the output
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0.0;            // dropout rate of the inputs, in [0, 1]; one mask for all steps
  double recurrent_dropout = 0.0;  // dropout rate of the state, in [0, 1]; one mask for all steps
  std::optional<int64_t> seed = {};  // for both dropouts; unset: the next streams
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool unroll = false;  // stored for Keras; has no effect
  bool zero_output_for_mask = false;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    recurrent_loop_fields(self, field);
    recurrent_cell_fields(self, field);
    field("activity_regularizer", self.activity_regularizer);
    field("recurrent_activation", self.recurrent_activation);
    field("unit_forget_bias", self.unit_forget_bias);
  }
};

// Runs an LSTMCell over the steps of sequences. See LSTMCell for the formula and the weights, and
// RecurrentLayer for inputs, outputs and masks.
class LSTMLayer final : public RecurrentLayer {
 public:
  static constexpr char kClassName[] = "LSTM";
  using Options = LSTMOptions;
  // Throws ValueError unless units > 0 and the dropout rates are in [0, 1].
  explicit LSTMLayer(Options options);
  Config get_config() const override { return config_of(options_); }

 private:
  const Options options_;
};

namespace layers {
using LSTM = LayerHandle<LSTMLayer>;
}

}  // namespace keel
