// Identity: returns its input (keras.layers.Identity).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// The options of IdentityLayer.
struct IdentityOptions {
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// Returns its input unchanged: a tensor of any layout, or a structure of tensors.
class IdentityLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Identity";
  using Options = IdentityOptions;
  explicit IdentityLayer(Options options)
      : Layer(kClassName, options), options_(std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override { return inputs; }

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Identity = LayerHandle<IdentityLayer>;
}  // namespace layers

}  // namespace keel
