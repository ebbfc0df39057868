// RNN and StackedRNNCells: recurrent layers from cells.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/layers/recurrent/recurrent.h>

namespace keel {

// Options of StackedRNNCells.
struct StackedRNNCellsOptions {
  std::vector<LayerHandle<RNNCell>> cells = {};  // required; the first one reads the input
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr const char* kUnsaved[] = {"cells"};  // get_config() writes the layers
  // Lists the fields that configs hold besides the cells.
  static constexpr void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// Several cells that behave as one (keras.layers.StackedRNNCells): each cell reads the output of
// the cell before it. The states are those of all cells; callers receive the states of a cell that
// has several as a list.
class StackedRNNCellsLayer final : public RNNCell, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "StackedRNNCells";
  using Options = StackedRNNCellsOptions;
  // Throws ValueError if there are no cells.
  explicit StackedRNNCellsLayer(Options options);

  const std::vector<LayerHandle<RNNCell>>& cells() const { return cells_; }  // those of the options
  std::vector<Shape> state_shapes(const Shape& input) const override;
  Shape output_shape(const Shape& input) const override;
  States initial_states(const Shape& input) const override;
  Tensors::Items packed(const States& states) const override;
  Run start(const Shape& input, bool training) override;
  std::vector<std::string> sublayer_attributes() const override;
  Config get_config() const override;
  // Creates the layer from its config, and the cells inside it. Throws ValueError for a layer that
  // is not a cell.
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  // Returns the shapes of the inputs of all cells.
  std::vector<Shape> input_shapes(const Shape& input) const;

  const std::vector<LayerHandle<RNNCell>> cells_;
  std::vector<size_t> state_counts_ = {};  // of each cell; set when built
};

// Options of RNN.
struct RNNOptions {
  std::optional<LayerHandle<RNNCell>> cell = {};  // required
  bool return_sequences = false;      // return the outputs of all steps, not only of the last
  bool return_state = false;          // also return the final states
  bool go_backwards = false;          // process the steps from the last to the first
  bool stateful = false;              // start each batch with the states of the previous one
  bool unroll = false;                // stored for Keras; has no effect
  bool zero_output_for_mask = false;  // output zeros at masked steps
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr const char* kUnsaved[] = {"cell"};  // get_config() writes the layer
  // Lists the fields that configs hold besides the cell.
  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    recurrent_loop_fields(self, field);
  }
};

// Runs any cell over the steps of sequences (keras.layers.RNN): GRUCell, LSTMCell, SimpleRNNCell,
// StackedRNNCells or your own (layers/recurrent/rnn_cell.h). See RecurrentLayer for inputs, outputs
// and masks. In configs, the cell may also be a list of cells, which are stacked.
class RNNLayer final : public RecurrentLayer {
 public:
  static constexpr char kClassName[] = "RNN";
  using Options = RNNOptions;
  // Throws ValueError if the cell is missing.
  explicit RNNLayer(Options options);

  Config get_config() const override;
  // Creates the layer from its config, and the cell inside it. Throws ValueError if that is not a
  // cell.
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  const Options options_;
};

namespace layers {
// Handles to the layers, under Keras's names.
using StackedRNNCells = LayerHandle<StackedRNNCellsLayer>;
using RNN = LayerHandle<RNNLayer>;
}  // namespace layers

}  // namespace keel
