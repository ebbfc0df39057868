// RNNCell: the base class of the cells that recurrent layers run over sequences.
#pragma once

#include <functional>
#include <vector>

#include <keel/layers/layer.h>

namespace keel {

// A layer that computes one step of a sequence from an input [batch, ...] and states [batch, ...].
// A call takes the list of the input and the states, which may be nested, and returns the tuple of
// the output and the list of the new states.
//
// To write a cell, derive from this class and implement state_shapes(), call() and, for weights,
// build_weights(). Run it with RNN (layers/recurrent/rnn.h):
//   class Decay final : public RNNCell {  // h = x + h_before / 2
//    public:
//     Decay() : RNNCell("Decay") {}
//     std::vector<Shape> state_shapes(const Shape& input) const override { return {input}; }
//
//    private:
//     Tensors call(const Tensors& inputs, const CallContext&) override {
//       const Tensor h = inputs[0].tensor() + inputs[1].tensor() / 2;
//       return step_result({.output = h, .states = {h}});
//     }
//   };
//   const layers::RNN rnn({.cell = make_layer<Decay>()});
// Files can name a cell that is registered (layers/registry.h). RecurrentCell is a base for cells
// whose states are all [batch, units].
class RNNCell : public Layer {
 public:
  // The states before or after a step, in order.
  using States = std::vector<Tensor>;
  // What a step computes.
  struct StepResult {
    Tensor output;  // [batch, ...]
    States states;  // those after the step
  };
  // The functions with which one call of a recurrent layer runs the cell.
  struct Run {
    // Computes the part of a step that does not depend on states: [batch, ...] -> [batch, ...], and
    // of several steps at once: [steps, batch, ...] -> [steps, batch, ...]. Empty if there is none.
    std::function<Tensor(const Tensor& x)> project = nullptr;
    // Computes a step from the projected input (without `project`: the input) and the states.
    std::function<StepResult(const Tensor& projected, const States& states)> step;
  };

  // Returns the shapes [batch, ...] of the states for inputs of shape [batch, ...]. The batch may
  // be unknown. Throws ValueError if the cell does not take such inputs.
  virtual std::vector<Shape> state_shapes(const Shape& input) const = 0;
  // Returns the shape of the output; by default that of the first state.
  virtual Shape output_shape(const Shape& input) const { return state_shapes(input).at(0); }
  // Returns the states before the first step, for inputs of a known shape; by default zeros.
  virtual States initial_states(const Shape& input) const;
  // Returns the states in the structure in which callers receive them, one item for each state by
  // default.
  virtual Tensors::Items packed(const States& states) const {
    return {states.begin(), states.end()};
  }
  // Begins a run over sequences whose steps have inputs of this shape. All steps of a run share
  // weights and dropout masks. The default calls the cell for each step.
  virtual Run start(const Shape& input, bool training);

 protected:
  using Layer::Layer;
  // Returns the result of call().
  static Tensors step_result(const StepResult& result);
  // The arguments of call().
  struct StepInputs {
    Tensor x;       // [batch, ...]
    States states;  // those before the step
  };
  // Returns a call's arguments, converted to dtype(). Throws ValueError unless there are `states`
  // states.
  StepInputs step_inputs(const Tensors& inputs, size_t states) const;
};

}  // namespace keel
