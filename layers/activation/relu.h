// ReLU: zero, or a slope, below a threshold and an upper limit (keras.layers.ReLU).
#pragma once

#include <optional>
#include <string>

#include <keel/layers/layer.h>

namespace keel {

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

// min(x, max_value) where x > threshold, else negative_slope * (x - threshold). As in Keras, the
// limit holds for what is above the threshold only. Gradient 0 at the threshold, but
// negative_slope if that is 0 and there is no limit; 1 at the limit, but 0 if that is 6 and the
// threshold 0 (relu6). Output of the input's shape, integers cast to the layer's dtype first.
class ReLULayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "ReLU";
  using Options = ReLUOptions;
  // ValueError for a negative option.
  explicit ReLULayer(Options options);
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using ReLU = LayerHandle<ReLULayer>;
}

}  // namespace keel
