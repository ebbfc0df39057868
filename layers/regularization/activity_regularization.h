// ActivityRegularization: adds a penalty on its input to the loss
// (keras.layers.ActivityRegularization).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of ActivityRegularization.
struct ActivityRegularizationOptions {
  double l1 = 0.0;
  double l2 = 0.0;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("l1", self.l1);
    field("l2", self.l2);
  }
};

// Returns x unchanged and adds l1 * sum |x| + l2 * sum x^2 to losses().
class ActivityRegularizationLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "ActivityRegularization";
  using Options = ActivityRegularizationOptions;
  explicit ActivityRegularizationLayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {
    set_activity_regularizer(regularizers::l1_l2(options_.l1, options_.l2));
  }
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& x, const CallContext&) override { return x; }

  const Options options_;
};

namespace layers {
using ActivityRegularization = LayerHandle<ActivityRegularizationLayer>;
}

}  // namespace keel
