// UnitNormalization: scales each sample to L2 norm 1 (keras.layers.UnitNormalization).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of UnitNormalization.
struct UnitNormalizationOptions {
  Axes axis = -1;  // axes over which the norm is computed
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
  }
};

// Computes x / max(|x|, 1e-12), where |x| is the L2 norm over the axes. Output has the shape and
// mask of the input.
class UnitNormalizationLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "UnitNormalization";
  using Options = UnitNormalizationOptions;
  explicit UnitNormalizationLayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {}
  bool supports_masking() const override { return true; }
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using UnitNormalization = LayerHandle<UnitNormalizationLayer>;
}

}  // namespace keel
