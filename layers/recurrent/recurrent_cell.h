// RecurrentCell: the base class of SimpleRNNCell, LSTMCell and GRUCell (one step of a recurrent
// layer).
//
// A cell has `gates` blocks of `units` columns: kernel is [in, gates * units] and recurrent_kernel
// is [units, gates * units]. A step computes
//   projected = x . kernel + bias               project(), for any number of steps at once
//   states = step(projected, states)            make_step()
// The first state is the output.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/regularization/dropout.h>

namespace keel {

// The options that all cells have, except activations.
struct RecurrentCellSettings {
  int64_t units = 0;
  bool use_bias = true;
  Initializer kernel_initializer = {};
  Initializer recurrent_initializer = {};
  Initializer bias_initializer = {};
  Regularizer kernel_regularizer = {};
  Regularizer recurrent_regularizer = {};
  Regularizer bias_regularizer = {};
  Constraint kernel_constraint = {};
  Constraint recurrent_constraint = {};
  Constraint bias_constraint = {};
  double dropout = 0.0;
  double recurrent_dropout = 0.0;
  std::optional<int64_t> seed = {};
};

// Copies these options from an options struct with the same member names.
template <class To>
To recurrent_settings(const auto& from) {
  To to;
  to.units = from.units;
  to.use_bias = from.use_bias;
  to.kernel_initializer = from.kernel_initializer;
  to.recurrent_initializer = from.recurrent_initializer;
  to.bias_initializer = from.bias_initializer;
  to.kernel_regularizer = from.kernel_regularizer;
  to.recurrent_regularizer = from.recurrent_regularizer;
  to.bias_regularizer = from.bias_regularizer;
  to.kernel_constraint = from.kernel_constraint;
  to.recurrent_constraint = from.recurrent_constraint;
  to.bias_constraint = from.bias_constraint;
  to.dropout = from.dropout;
  to.recurrent_dropout = from.recurrent_dropout;
  to.seed = from.seed;
  return to;
}

// Visits the fields of these options and of the activation, for configs.
void recurrent_cell_fields(auto& self, auto&& field) {
  field("units", self.units);
  field("activation", self.activation);
  field("use_bias", self.use_bias);
  field("kernel_initializer", self.kernel_initializer);
  field("recurrent_initializer", self.recurrent_initializer);
  field("bias_initializer", self.bias_initializer);
  field("kernel_regularizer", self.kernel_regularizer);
  field("recurrent_regularizer", self.recurrent_regularizer);
  field("bias_regularizer", self.bias_regularizer);
  field("kernel_constraint", self.kernel_constraint);
  field("recurrent_constraint", self.recurrent_constraint);
  field("bias_constraint", self.bias_constraint);
  field("dropout", self.dropout);
  field("recurrent_dropout", self.recurrent_dropout);
  field("seed", self.seed);
}

// A call of a cell as a layer takes the list of x [batch, in] and its states [batch, units], and
// returns the tuple of the output and the list of the new states. In training with dropout each
// call draws masks; a RecurrentLayer draws them once for all steps. With recurrent_dropout each
// gate has its own masks, as in Keras.
//
// Throws ValueError unless units > 0 and both rates are in [0, 1].
class RecurrentCell : public Layer {
 public:
  using States = std::vector<Tensor>;
  using Step = std::function<States(const Tensor& projected, const States& states)>;
  // Factors of x, [batch, in], and of the previous output, [batch, units]: none, one mask for all
  // gates, or one per gate.
  struct Masks {
    std::vector<Tensor> inputs, states;
  };

  int64_t units() const { return settings_.units; }
  // Returns the number of states; each has `units` columns.
  virtual int state_count() const { return 1; }

  // Draws dropout masks, given ones with the shapes of an input and a state. Returns no masks
  // unless `training`.
  Masks draw_masks(const Tensor& input_ones, const Tensor& state_ones, bool training) const;
  // Computes x . kernel + bias: [..., batch, in] -> [..., batch, gates * units].
  Tensor project(const Tensor& x, const Masks& masks) const;
  // Returns the function of one step. It holds the values of the weights, so that they are read
  // once.
  virtual Step make_step(const Masks& masks) const = 0;

  const Variable& kernel() const { return kernel_; }                      // empty until built
  const Variable& recurrent_kernel() const { return recurrent_kernel_; }  // empty until built
  const Variable& bias() const { return bias_; }  // empty until built, and if !use_bias

 protected:
  template <class Options>
  RecurrentCell(const char* class_name, Options& options, int gates)
      : Layer(class_name, options),
        settings_(recurrent_settings<RecurrentCellSettings>(options)),
        gates_(gates) {
    check_settings();
  }
  virtual Shape bias_shape() const { return {gates_ * units()}; }
  // Returns the bias that project() adds; may be empty.
  virtual Tensor input_bias() const;
  // recur() returns state . recurrent_kernel for all gates, with a mask per gate if there are
  // several. `kernels` is the result of recurrent_kernels().
  struct RecurrentKernels {
    Tensor all;
    std::vector<Tensor> of_gates;  // set only if there is a mask per gate
  };
  RecurrentKernels recurrent_kernels(const Masks& masks) const;
  static Tensor recur(const Tensor& state, const RecurrentKernels& kernels, const Masks& masks);

  void build_weights(const Specs& inputs) override;

 private:
  void check_settings();
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const RecurrentCellSettings settings_;
  const int gates_;
  std::optional<layers::Dropout> dropout_, recurrent_dropout_;
  Variable kernel_, recurrent_kernel_, bias_;
};

}  // namespace keel
