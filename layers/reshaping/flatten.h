// Flatten: flattens each sample to a vector (keras.layers.Flatten).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of Flatten.
struct FlattenOptions {
  std::string data_format = "channels_last";  // or "channels_first": features are axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
  }
};

// Input [batch, dims...]; output [batch, product of dims], or [batch, 1] for a vector. Accepts any
// dtype. With "channels_first" values are output in the order of "channels_last". Throws ValueError
// for a scalar.
class FlattenLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Flatten";
  using Options = FlattenOptions;
  // Throws ValueError for an unknown data_format.
  explicit FlattenLayer(Options options);
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
  const bool channels_last_;
};

namespace layers {
using Flatten = LayerHandle<FlattenLayer>;
}

}  // namespace keel
