// Bidirectional: runs recurrent layers over sequences in both directions
// (keras.layers.Bidirectional).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/recurrent/recurrent_layer.h>

namespace keel {

// Options of Bidirectional.
struct BidirectionalOptions {
  std::optional<LayerHandle<Layer>> layer = {};  // required; a recurrent layer
  std::optional<std::string> merge_mode = "concat";
  // Unset: a copy of `layer` in the other direction.
  std::optional<LayerHandle<Layer>> backward_layer = {};
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Runs forward_layer, created from the config of `layer`, and backward_layer on the same sequences.
// Output sequences of the backward layer are reversed to the order of the steps, then merged by
// merge_mode: "concat", "sum", "mul" or "ave"; unset: a tuple of both. If the layers return states,
// all states follow in the same tuple, those of the forward layer first.
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
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;
  void check_layers() const;
  std::vector<Tensor> merged(const Tensor& forward, const Tensor& backward) const;

  const std::optional<std::string> merge_mode_;
  const LayerHandle<RecurrentLayer> forward_, backward_;
};

namespace layers {
using Bidirectional = LayerHandle<BidirectionalLayer>;
}

}  // namespace keel
