// TimeDistributed: a layer applied to each step of sequences (keras.layers.TimeDistributed).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <keel/layers/layer.h>
#include <keel/layers/sublayer_attributes.h>

namespace keel {

struct TimeDistributedOptions {
  std::optional<LayerHandle<Layer>> layer = {};  // required
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};
};

// Input [batch, steps, ...]; the layer is called with [batch, ...] of each step in turn, as Keras
// does (so batch statistics are those of a step), and its results are stacked:
// [batch, steps, ...]. A mask [batch, steps, ...] gives each step its part, and is the result's
// where it fits its shape. ValueError for an input of rank below 3 and for no steps; TypeError if
// the layer takes or returns more than one dense tensor.
class TimeDistributedLayer final : public Layer, public SublayerAttributes {
 public:
  static constexpr char kClassName[] = "TimeDistributed";
  using Options = TimeDistributedOptions;
  // ValueError if the layer is missing.
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
