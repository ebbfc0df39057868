// RecurrentLayer: the base class of recurrent layers (RNN, SimpleRNN, LSTM, GRU, ConvLSTM).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/layer_types.h>
#include <keel/layers/recurrent/recurrent_cell.h>

namespace keel {

// Lists the fields that only the options of recurrent layers have, for configs.
constexpr void recurrent_loop_fields(auto& self, auto&& field) {
  field("return_sequences", self.return_sequences);
  field("return_state", self.return_state);
  field("go_backwards", self.go_backwards);
  field("stateful", self.stateful);
  field("unroll", self.unroll);
  field("zero_output_for_mask", self.zero_output_for_mask);
}

// Options of a call of a recurrent layer.
struct RecurrentCallOptions {
  std::optional<bool> training = {};       // unset: as the enclosing layer, else false
  std::vector<Tensor> initial_state = {};  // empty, or all states of the cell, [batch, ...]
};

// Runs a cell over the steps of sequences. Input is [batch, steps, ...], or a list of it and the
// initial states (default zeros). Output is [batch, ...], the output of the last step, or with
// return_sequences [batch, steps, ...], the outputs of all steps. With return_state the result is
// a tuple of the output and the final states. The axes "..." are those of the cell: the features of
// an input, the units of an output.
//
//   go_backwards  processes the steps from the last to the first, and returns their outputs in
//       this order.
//   stateful  starts row i of a batch with the final states of row i of the previous batch, until
//       reset_states() is called. The states are variables of the layer. All batches (in a
//       strategy, the replica's part of them) must have the number of rows known at build time.
//   mask [batch, steps]  leaves the states unchanged at masked steps. The output of such a step is
//       the previous output, or zeros at the start; with zero_output_for_mask always zeros. The
//       outputs of all steps have the same mask.
//
// Throws ValueError for a rank below 3, inputs that the cell does not take, no steps, a wrong
// number or shape of states and, if stateful, for an unknown or different number of rows.
class RecurrentLayer : public Layer, public SublayerAttributes {
 public:
  using CallOptions = RecurrentCallOptions;

  // Runs the cell over `sequences`, starting with options.initial_state if it is not empty.
  Tensors operator()(const Tensors& sequences, const CallOptions& options = {});
  Tensor operator()(const Tensor& sequences, const CallOptions& options = {});
  // Calls the layer again with the inputs of a graph's node.
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  // How the cell is run: the options of these names.
  struct Loop {
    bool return_sequences;      // return the outputs of all steps
    bool return_state;          // also return the final states
    bool go_backwards;          // process the steps from the last to the first
    bool stateful;              // start with the states of the previous batch
    bool zero_output_for_mask;  // output zeros at masked steps
  };
  // Returns how the cell is run.
  const Loop& loop() const { return loop_; }
  // Changes the option zero_output_for_mask.
  void set_zero_output_for_mask(bool zero) { loop_.zero_output_for_mask = zero; }
  // Returns the cell that is run.
  const LayerHandle<RNNCell>& cell() const { return cell_; }
  // Sets the stored states to zero; has no effect unless stateful.
  void reset_states();
  const std::vector<Variable>& states() const { return states_; }  // empty if not stateful or built

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::vector<std::string> sublayer_attributes() const override { return {"cell"}; }

 protected:
  // Runs `cell`, a new cell. `options` has the fields of recurrent_loop_fields() and base_fields(),
  // and may have an activity_regularizer. An empty name is replaced in `options` too.
  template <class Options>
  RecurrentLayer(const char* class_name, Options& options, LayerHandle<RNNCell> cell)
      : Layer(class_name, options),
        loop_{.return_sequences = options.return_sequences,
              .return_state = options.return_state,
              .go_backwards = options.go_backwards,
              .stateful = options.stateful,
              .zero_output_for_mask = options.zero_output_for_mask},
        cell_(track(std::move(cell))) {
    if constexpr (requires { options.activity_regularizer; }) {
      set_activity_regularizer(options.activity_regularizer);
    }
  }
  // Returns a config of the layer's options with the current value of zero_output_for_mask.
  Config config_of(Config options) const;

 private:
  struct Result;

  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  std::string caller() const { return class_name() + " " + name(); }
  void check_sequences(const Shape& shape) const;
  RNNCell::States initial_states(const Tensors& inputs, const Shape& step) const;
  RNNCell::States given_states(const Tensors& inputs, size_t count) const;
  Result run(const Tensor& x, const Tensor& mask, RNNCell::States states, bool training) const;
  Tensors outputs_of(const Tensor& output, const RNNCell::States& states) const;

  Loop loop_;
  const LayerHandle<RNNCell> cell_;
  std::vector<Variable> states_;
};

}  // namespace keel
