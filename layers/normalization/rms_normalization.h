// RMSNormalization: normalizes each sample by its root mean square (keras.layers.RMSNormalization;
// Zhang and Sennrich 2019).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of RMSNormalization.
struct RMSNormalizationOptions {
  Axes axis = -1;  // axes over which the mean is computed
  double epsilon = 1e-6;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
    field("epsilon", self.epsilon);
  }
};

// Computes scale * x / sqrt(mean(x^2) + epsilon). Input and output have the same shape; the weight
// scale, initially ones, has the dimensions of the axes.
class RMSNormalizationLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "RMSNormalization";
  using Options = RMSNormalizationOptions;
  // Throws ValueError for epsilon < 0.
  explicit RMSNormalizationLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the dimensions of the axes are known.
  void build_weights(const TensorSpec& input) override;
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  Variable scale_;
};

namespace layers {
using RMSNormalization = LayerHandle<RMSNormalizationLayer>;
}

}  // namespace keel
