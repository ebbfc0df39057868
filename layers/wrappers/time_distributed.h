// TimeDistributed: applies a layer to each step of sequences (keras.layers.TimeDistributed).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/sublayer_attributes.h>

namespace keel {

// Options of TimeDistributed.
struct TimeDistributedOptions {
  std::optional<LayerHandle<Layer>> layer = {};  // required
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Input is [batch, steps, ...]. The layer is called with the [batch, ...] of each step in turn, as
// in Keras, so batch statistics are those of one step. The results are stacked to [batch, steps,
// ...]. A mask [batch, steps, ...] is split among the steps, and becomes the mask of the result if
// its shape fits.
//
// Throws ValueError for an input of rank less than 3 and for no steps, and TypeError if the layer
// takes or returns more than one dense tensor.
class TimeDistributedLayer final : public Layer, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "TimeDistributed";
  using Options = TimeDistributedOptions;
  // Throws ValueError if the layer is missing.
  explicit TimeDistributedLayer(Options options);

  const LayerHandle<Layer>& layer() const { return layer_; }
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::vector<std::string> sublayer_attributes() const override { return {"layer"}; }
  Config get_config() const override;
  static std::shared_ptr<Layer> from_config(const Config& config);

 private:
  void build_weights(const Specs& inputs) override;
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const LayerHandle<Layer> layer_;
};

namespace layers {
using TimeDistributed = LayerHandle<TimeDistributedLayer>;
}

}  // namespace keel
