// Rescaling: multiplies by a scale and adds an offset (keras.layers.Rescaling).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of Rescaling.
struct RescalingOptions {
  ScalarOrList scale = 1.0;  // one value, or one for each position of the last axis
  ScalarOrList offset = 0.0;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("scale", self.scale);
    field("offset", self.offset);
  }
};

// Computes x * scale + offset. Input has any shape and numeric dtype; output has the layer's dtype.
class RescalingLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Rescaling";
  using Options = RescalingOptions;
  explicit RescalingLayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Rescaling = LayerHandle<RescalingLayer>;
}

}  // namespace keel
