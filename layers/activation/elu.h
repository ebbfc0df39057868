// ELU: an exponential function below zero (keras.layers.ELU; Clevert et al. 2015).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// The options of ELULayer.
struct ELUOptions {
  double alpha = 1.0;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("alpha", self.alpha);
  }
};

// Computes x where x > 0, else alpha * (e^x - 1). The output has the shape of the input. Integers
// are first cast to the layer's dtype.
class ELULayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "ELU";
  using Options = ELUOptions;
  explicit ELULayer(Options options)
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
using ELU = LayerHandle<ELULayer>;
}  // namespace layers

}  // namespace keel
