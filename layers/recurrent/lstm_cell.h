// LSTMCell: one step of an LSTM (keras.layers.LSTMCell).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/recurrent/recurrent_cell.h>

namespace keel {

// Options of LSTMCell.
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
  double dropout = 0.0;              // dropout rate of the inputs, in [0, 1]
  double recurrent_dropout = 0.0;    // dropout rate of the state, in [0, 1]
  std::optional<int64_t> seed = {};  // for both dropouts; unset: the next streams
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

// Let s = recurrent_activation and let (i, f, g, o) be the blocks of `units` columns of x . kernel
// + bias + h_before . recurrent_kernel:
//   c = s(f) c_before + s(i) activation(g)
//   h = s(o) activation(c)
// The states are h and c. Shapes: kernel [in, 4 units], recurrent_kernel [units, 4 units], bias [4
// units]. With unit_forget_bias the block f of the bias is initialized to 1. See RecurrentCell.
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
