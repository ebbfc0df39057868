// Identity: passes its input on (keras.layers.Identity).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct IdentityOptions {
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// Returns what it is given: a tensor of any layout, or a structure of them.
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
using Identity = LayerHandle<IdentityLayer>;
}

}  // namespace keel
