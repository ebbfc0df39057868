// RecurrentCell: the base class of cells with gates, whose states are all [batch, units].
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/recurrent/rnn_cell.h>
#include <keel/layers/regularization/regularization.h>

namespace keel {

// Lists the fields that the options of all cells and recurrent layers have, for configs.
constexpr void recurrent_cell_fields(auto& self, auto&& field) {
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

// The options that all cells have, except activations. The options of your own cell may derive from
// this struct and add name, trainable and dtype.
struct RecurrentCellSettings {
  int64_t units = 0;                                  // required, > 0
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

// One step of a recurrent layer. A cell has `gates` blocks of `units` columns: the weight kernel is
// [in, gates * units] and recurrent_kernel is [units, gates * units]. A step computes
//   projected = x . kernel + bias               project(), for any number of steps at once
//   states = step(projected, states)            make_step()
// The first state is the output.
//
// A call of a cell as a layer takes the list of x [batch, in] and its states [batch, units], and
// returns the tuple of the output and the list of the new states. In training with dropout each
// call draws masks; a RecurrentLayer draws them once for all steps. With recurrent_dropout each
// gate has its own masks, as in Keras.
//
// Throws ValueError unless units > 0 and both rates are in [0, 1], and for inputs of other shapes.
//
// To implement a cell, derive from this class, implement gates() and make_step(), and pass a handle
// to the cell to RNN, or to the constructor of your class derived from RecurrentLayer:
//   Step make_step(const Masks& masks) const override {  // in MyCell
//     return [masks, kernels = recurrent_kernels(masks)](const Tensor& x, const States& states) {
//       return States{ops::tanh(x + recur(states[0], kernels, masks))};
//     };
//   }
class RecurrentCell : public RNNCell {
 public:
  // Computes the states after a step from x . kernel + bias and the states before it.
  using Step = std::function<States(const Tensor& projected, const States& states)>;
  // Dropout factors: none, one mask for all gates, or one per gate.
  struct Masks {
    std::vector<Tensor> inputs;  // of x, [batch, in]
    std::vector<Tensor> states;  // of the previous output, [batch, units]
  };

  // Returns the number of columns of the output and of each state.
  int64_t units() const;
  // Returns the number of states.
  virtual int state_count() const { return 1; }
  // Returns [batch, units] for each state. Throws ValueError unless `input` is [batch, features].
  std::vector<Shape> state_shapes(const Shape& input) const override;
  Run start(const Shape& input, bool training) override;

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
  // `options` has the fields of recurrent_cell_fields() except `activation`, and the fields of
  // base_fields(). An empty name is replaced in `options` too.
  template <class Options>
  RecurrentCell(const char* class_name, Options& options)
      : RNNCell(class_name, options),
        settings_(recurrent_settings<RecurrentCellSettings>(options)) {
    check_settings();
  }

  // Returns the number of blocks of `units` columns.
  virtual int gates() const = 0;
  // Returns the shape of the weight bias.
  virtual Shape bias_shape() const { return {gates() * units()}; }
  // Returns the bias that project() adds; may be empty.
  virtual Tensor input_bias() const;

  // The recurrent kernel, and its parts if there is a mask per gate.
  struct RecurrentKernels {
    Tensor all;                    // [units, gates * units]
    std::vector<Tensor> of_gates;  // one [units, units] per gate, or empty
  };
  // Returns the value of the weight.
  RecurrentKernels recurrent_kernels(const Masks& masks) const;
  // Returns state . recurrent_kernel for all gates, with a mask per gate if there are several.
  static Tensor recur(const Tensor& state, const RecurrentKernels& kernels, const Masks& masks);

  void build_weights(const Specs& inputs) override;

 private:
  void check_settings();
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const RecurrentCellSettings settings_;
  std::optional<layers::Dropout> dropout_, recurrent_dropout_;
  Variable kernel_, recurrent_kernel_, bias_;
};

}  // namespace keel
