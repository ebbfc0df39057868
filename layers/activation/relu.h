// ReLU: a rectifier with an optional slope, threshold and upper limit (keras.layers.ReLU).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/layer.h>

namespace keel {

// The options of ReLULayer.
struct ReLUOptions {
  std::optional<double> max_value = {};  // >= 0; unset: no limit
  double negative_slope = 0.0;           // >= 0
  double threshold = 0.0;                // >= 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("max_value", self.max_value);
    field("negative_slope", self.negative_slope);
    field("threshold", self.threshold);
  }
};

// Computes min(x, max_value) where x > threshold, and negative_slope * (x - threshold) elsewhere.
// As in Keras, the limit applies only to values above the threshold. The output has the shape and
// mask of the input. Integers are first cast to the layer's dtype.
//
// The gradient at x = threshold is 0, except that it is negative_slope if the threshold is 0 and
// there is no limit. The gradient at x = max_value is 1, except that it is 0 if max_value is 6 and
// the threshold is 0 (relu6).
class ReLULayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "ReLU";
  using Options = ReLUOptions;
  // Throws ValueError for a negative option.
  explicit ReLULayer(Options options);
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using ReLU = LayerHandle<ReLULayer>;
}  // namespace layers

}  // namespace keel
