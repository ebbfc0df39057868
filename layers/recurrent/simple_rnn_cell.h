// SimpleRNNCell: one step of a SimpleRNN (keras.layers.SimpleRNNCell).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/recurrent/recurrent_cell.h>

namespace keel {

// Options of SimpleRNNCell.
struct SimpleRNNCellOptions {
  int64_t units = 0;  // required, > 0
  Activation activation = "tanh";
  bool use_bias = true;
  Initializer kernel_initializer = "glorot_uniform";
  Initializer recurrent_initializer = "orthogonal";
  Initializer bias_initializer = "zeros";
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
  }
};

// Computes h = activation(x . kernel + bias + h_before . recurrent_kernel). The only state is h.
// Shapes: kernel [in, units], recurrent_kernel [units, units], bias [units]. See RecurrentCell.
class SimpleRNNCellLayer final : public RecurrentCell {
 public:
  static constexpr char kClassName[] = "SimpleRNNCell";
  using Options = SimpleRNNCellOptions;
  explicit SimpleRNNCellLayer(Options options)
      : RecurrentCell(kClassName, options, 1), options_(std::move(options)) {}

  Step make_step(const Masks& masks) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

namespace layers {
using SimpleRNNCell = LayerHandle<SimpleRNNCellLayer>;
}

}  // namespace keel
