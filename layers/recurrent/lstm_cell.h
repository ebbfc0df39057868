// LSTMCell: one step of LSTM (keras.layers.LSTMCell).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/recurrent/recurrent_cell.h>

namespace keel {

struct LSTMCellOptions {
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
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0.0;              // of the inputs, in [0, 1]
  double recurrent_dropout = 0.0;    // of the state, idem
  std::optional<int64_t> seed = {};  // of both; unset: the next streams of set_random_seed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    recurrent_cell_fields(self, field);
    field("recurrent_activation", self.recurrent_activation);
    field("unit_forget_bias", self.unit_forget_bias);
  }
};

// With s = recurrent_activation and (i, f, g, o) = x . kernel + bias + h_before . recurrent_kernel
// in blocks of `units` columns:
//   c = s(f) c_before + s(i) activation(g)
//   h = s(o) activation(c)
// Two states, h and c. kernel [in, 4 units], recurrent_kernel [units, 4 units], bias [4 units],
// of which unit_forget_bias makes the block of f start at 1. See RecurrentCell.
class LSTMCellLayer final : public RecurrentCell {
 public:
  static constexpr char kClassName[] = "LSTMCell";
  using Options = LSTMCellOptions;
  explicit LSTMCellLayer(Options options)
      : RecurrentCell(kClassName, options, 4), options_(std::move(options)) {}

  Step make_step(const Masks& masks) const override;
  int state_count() const override { return 2; }
  Config get_config() const override { return to_config(options_); }

 private:
  void build_weights(const Specs& inputs) override;

  const Options options_;
};

namespace layers {
using LSTMCell = LayerHandle<LSTMCellLayer>;
}

}  // namespace keel
