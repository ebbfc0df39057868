// Flatten: one row of values per sample (keras.layers.Flatten).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct FlattenOptions {
  std::string data_format = "channels_last";  // or "channels_first": the features stand at axis 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
  }
};

// Input [batch, dims...]; output [batch, product of dims], [batch, 1] for a vector. Any dtype. Of
// channels_first the values come in the order of channels_last. ValueError for a scalar.
class FlattenLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Flatten";
  using Options = FlattenOptions;
  // ValueError for another data_format.
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
