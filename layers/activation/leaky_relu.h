// LeakyReLU: a constant slope below zero (keras.layers.LeakyReLU).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// The options of LeakyReLULayer.
struct LeakyReLUOptions {
  double negative_slope = 0.3;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("negative_slope", self.negative_slope);
  }
};

// Computes x where x > 0, else negative_slope * x. The gradient is 1 or negative_slope,
// respectively. The output has the shape of the input. Integers are first cast to the layer's
// dtype.
class LeakyReLULayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "LeakyReLU";
  using Options = LeakyReLUOptions;
  explicit LeakyReLULayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using LeakyReLU = LayerHandle<LeakyReLULayer>;
}  // namespace layers

}  // namespace keel
