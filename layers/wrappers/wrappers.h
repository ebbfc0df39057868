// Layers that run other layers over sequences: Bidirectional and TimeDistributed.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/layer_types.h>
#include <keel/layers/recurrent/recurrent.h>
#include <keel/layers/wrappers/wrapper.h>

namespace keel {

// Options of Bidirectional.
struct BidirectionalOptions {
  std::optional<LayerHandle<Layer>> layer = {};      // required; a recurrent layer
  std::optional<std::string> merge_mode = "concat";  // "sum", "mul", "ave"; unset: no merging
  // Unset: a copy of `layer` in the other direction.
  std::optional<LayerHandle<Layer>> backward_layer = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Runs recurrent layers over sequences in both directions (keras.layers.Bidirectional):
// forward_layer, created from the config of `layer`, and backward_layer. Output sequences of the
// backward layer are reversed to the order of the steps, then merged by merge_mode: "concat",
// "sum", "mul" or "ave"; unset: a tuple of both. If the layers return states, all states follow in
// the same tuple, those of the forward layer first.
//
// Input and masks are those of RecurrentLayer; the first half of the initial states belongs to the
// forward layer. Output sequences are zero where the mask is false, regardless of the layers'
// options.
class BidirectionalLayer final : public Layer, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "Bidirectional";
  using Options = BidirectionalOptions;
  using CallOptions = RecurrentCallOptions;
  // Throws ValueError for a layer that is missing or not recurrent, an unknown merge_mode, two
  // layers with the same direction, and layers that differ in stateful, return_sequences or
  // return_state. The class of `layer` must be registered.
  explicit BidirectionalLayer(Options options);

  // Runs both layers over `sequences`, starting with options.initial_state if it is not empty.
  Tensors operator()(const Tensors& sequences, const CallOptions& options = {});
  Tensor operator()(const Tensor& sequences, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  // Return the layers that run over the steps in each direction.
  const LayerHandle<RecurrentLayer>& forward_layer() const { return forward_; }
  const LayerHandle<RecurrentLayer>& backward_layer() const { return backward_; }
  // Resets the states of both layers.
  void reset_states();

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::vector<std::string> sublayer_attributes() const override {
    return {"forward_layer", "backward_layer"};
  }
  Config get_config() const override;
  // Creates the layer from its config, and the layers inside it.
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  void check_layers() const;
  std::vector<Tensor> merged(const Tensor& forward, const Tensor& backward) const;

  const std::optional<std::string> merge_mode_;
  const LayerHandle<RecurrentLayer> forward_, backward_;
};

// Options of TimeDistributed.
struct TimeDistributedOptions {
  std::optional<LayerHandle<Layer>> layer = {};  // required
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr const char* kUnsaved[] = {"layer"};  // get_config() writes the layer
  // Lists the fields that configs hold besides the layer.
  static constexpr void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// Applies a layer to each step of sequences (keras.layers.TimeDistributed). Input is [batch, steps,
// ...]. The layer is called with the [batch, ...] of each step in turn, as in Keras, so batch
// statistics are those of one step. The results are stacked to [batch, steps, ...]. A mask [batch,
// steps, ...] is split among the steps, and becomes the mask of the result if its shape fits.
//
// Throws ValueError for an input of rank less than 3 and for no steps, and TypeError if the layer
// takes or returns more than one dense tensor.
class TimeDistributedLayer final : public WrapperLayer {
 public:
  static constexpr char kClassName[] = "TimeDistributed";
  using Options = TimeDistributedOptions;
  // Throws ValueError if the layer is missing.
  explicit TimeDistributedLayer(Options options);

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  // Creates the layer from its config, and the layers inside it.
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Bidirectional = LayerHandle<BidirectionalLayer>;
using TimeDistributed = LayerHandle<TimeDistributedLayer>;
}  // namespace layers

}  // namespace keel
