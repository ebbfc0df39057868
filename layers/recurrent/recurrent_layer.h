// RecurrentLayer: runs a cell over the steps of sequences (the base of keras.layers.SimpleRNN,
// LSTM and GRU).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/recurrent/recurrent_cell.h>
#include <keel/layers/sublayer_attributes.h>

namespace keel {

// How the cell is run: the options that all recurrent layers have.
struct RecurrentLoop {
  bool return_sequences = false;
  bool return_state = false;
  bool go_backwards = false;
  bool stateful = false;
  bool zero_output_for_mask = false;
};

RecurrentLoop recurrent_loop(const auto& options) {
  return {.return_sequences = options.return_sequences,
          .return_state = options.return_state,
          .go_backwards = options.go_backwards,
          .stateful = options.stateful,
          .zero_output_for_mask = options.zero_output_for_mask};
}

void recurrent_loop_fields(auto& self, auto&& field) {
  field("return_sequences", self.return_sequences);
  field("return_state", self.return_state);
  field("go_backwards", self.go_backwards);
  field("stateful", self.stateful);
  field("unroll", self.unroll);
  field("zero_output_for_mask", self.zero_output_for_mask);
}

struct RecurrentCallOptions {
  std::optional<bool> training = {};
  std::vector<Tensor> initial_state = {};  // all states of the cell, [batch, units]; or none
};

// The list of the sequences and the states, or the sequences alone if there are none.
Tensors recurrent_inputs(const Tensors& sequences, const std::vector<Tensor>& initial_state);

// Input [batch, steps, in], or a list of it and the states to begin with (zeros if left out).
// Output [batch, units], the cell's after the last step; with return_sequences
// [batch, steps, units], all of them. With return_state a tuple of that and the last states.
//
//   go_backwards  takes the steps from the last to the first, and gives the outputs in that order.
//   stateful  each batch begins with the states that the one before ended with, row by row, until
//       reset_states(). They are state of the layer; all batches (in a strategy: a replica's part
//       of them) have the number of rows that the layer was built for.
//   mask [batch, steps]  a step that does not count leaves the states alone. Its output is the one
//       before it, or zeros at the start; always zeros with zero_output_for_mask. The outputs of
//       all steps have the same mask.
//
// ValueError for another rank, features that are not known, no steps, another number or shape of
// states, and if stateful for a batch of another number of rows or one that is not known.
class RecurrentLayer : public Layer, public SublayerAttributes {
 public:
  using CallOptions = RecurrentCallOptions;

  Tensors operator()(const Tensors& sequences, const CallOptions& options = {});
  Tensor operator()(const Tensor& sequences, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  const LayerHandle<RecurrentCell>& cell() const { return cell_; }
  const RecurrentLoop& loop() const { return loop_; }
  void set_zero_output_for_mask(bool zero) { loop_.zero_output_for_mask = zero; }
  // Sets the kept states to zero. Nothing to do unless stateful.
  void reset_states();
  const std::vector<Variable>& states() const { return states_; }  // empty unless stateful, built

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::vector<std::string> sublayer_attributes() const override { return {"cell"}; }

 protected:
  template <class Options>
  RecurrentLayer(const char* class_name, Options& options, LayerHandle<RecurrentCell> cell)
      : Layer(class_name, options), loop_(recurrent_loop(options)), cell_(track(std::move(cell))) {
    set_activity_regularizer(options.activity_regularizer);
  }
  // The config of `options`, with what was set since.
  template <class Options>
  Config config_of(const Options& options) const {
    Config out = to_config(options);
    out.set("zero_output_for_mask", loop_.zero_output_for_mask);
    return out;
  }

 private:
  using States = RecurrentCell::States;
  struct Result;

  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  std::string caller() const { return class_name() + " " + name(); }
  void check_sequences(const Shape& shape) const;
  States initial_states(const Tensors& inputs, int64_t batch) const;
  Result run(const Tensor& x, const Tensor& mask, States states, bool training) const;
  Tensors outputs_of(const Tensor& output, const States& states) const;

  RecurrentLoop loop_;
  const LayerHandle<RecurrentCell> cell_;
  std::vector<Variable> states_;
};

}  // namespace keel
