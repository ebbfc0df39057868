// Bidirectional: a recurrent layer over sequences from both ends (keras.layers.Bidirectional).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/recurrent/recurrent_layer.h>

namespace keel {

struct BidirectionalOptions {
  std::optional<LayerHandle<Layer>> layer = {};  // required
  std::optional<std::string> merge_mode = "concat";
  std::optional<LayerHandle<Layer>> backward_layer = {};  // unset: `layer`, backwards
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Runs forward_layer, made anew from the config of `layer`, and backward_layer on the same
// sequences. Outputs of the latter are brought into the order of steps, then merged: merge_mode
// "concat" (side by side), "sum", "mul" or "ave"; unset: a tuple of both. Where the layers return
// states, all follow in one tuple, those of the forward layer first.
// Input and masks as of RecurrentLayer; the first half of initial states is for the forward layer.
// Sequences of results are zero where the mask is false, whatever the layers' options.
class BidirectionalLayer final : public Layer, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "Bidirectional";
  using Options = BidirectionalOptions;
  using CallOptions = RecurrentCallOptions;
  // ValueError for a layer that is missing or not recurrent, another merge_mode, layers of one
  // direction, and layers that differ in stateful, return_sequences or return_state. `layer` must
  // be a class of the registry.
  explicit BidirectionalLayer(Options options);

  Tensors operator()(const Tensors& sequences, const CallOptions& options = {});
  Tensor operator()(const Tensor& sequences, const CallOptions& options = {});
  Tensors replay(const Tensors& inputs, const keel::CallOptions& options) override;

  const LayerHandle<RecurrentLayer>& forward_layer() const { return forward_; }
  const LayerHandle<RecurrentLayer>& backward_layer() const { return backward_; }
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
