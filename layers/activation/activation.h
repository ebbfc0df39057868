// Activation: applies an activation function (keras.layers.Activation).
#pragma once

#include <string>

#include <keel/layers/activations.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of ActivationLayer.
struct ActivationOptions {
  Activation activation = "linear";
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("activation", self.activation);
  }
};

// Computes activation(x). The output has the shape and mask of the input.
class ActivationLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Activation";
  using Options = ActivationOptions;
  explicit ActivationLayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Activation = LayerHandle<ActivationLayer>;
}  // namespace layers

}  // namespace keel
