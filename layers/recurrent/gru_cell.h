// GRUCell: one step of a GRU (keras.layers.GRUCell).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/recurrent/recurrent_cell.h>

namespace keel {

// Options of GRUCell.
struct GRUCellOptions {
  int64_t units = 0;  // required, > 0
  Activation activation = "tanh";
  Activation recurrent_activation = "sigmoid";
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
  double dropout = 0.0;            // dropout rate of the inputs, in [0, 1]
  double recurrent_dropout = 0.0;  // dropout rate of the state, in [0, 1]
  bool reset_after = true;
  std::optional<int64_t> seed = {};  // for both dropouts; unset: the next streams
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    recurrent_cell_fields(self, field);
    field("recurrent_activation", self.recurrent_activation);
    field("reset_after", self.reset_after);
  }
};

// Let s = recurrent_activation. The kernel W, the recurrent_kernel U, and the biases b of the input
// and d of the state each consist of blocks (z, r, g):
//   z = s(x W_z + b_z + h_before U_z + d_z),   r = s(x W_r + b_r + h_before U_r + d_r)
//   g = activation(x W_g + b_g + r (h_before U_g + d_g))  if reset_after, otherwise
//   g = activation(x W_g + b_g + (r h_before) U_g)
//   h = z h_before + (1 - z) g
// The only state is h. Shapes: kernel [in, 3 units], recurrent_kernel [units, 3 units]. The bias is
// [2, 3 units] with rows b and d or, without reset_after, [3 units] with b only. See RecurrentCell.
class GRUCellLayer final : public RecurrentCell {
 public:
  static constexpr char kClassName[] = "GRUCell";
  using Options = GRUCellOptions;
  explicit GRUCellLayer(Options options)
      : RecurrentCell(kClassName, options, 3), options_(std::move(options)) {}

  Step make_step(const Masks& masks) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Shape bias_shape() const override;
  Tensor input_bias() const override;
  // Without reset_after: computes the gates z and r first, then the candidate from r h_before.
  Step make_step_before(const Masks& masks) const;

  const Options options_;
};

namespace layers {
using GRUCell = LayerHandle<GRUCellLayer>;
}

}  // namespace keel
