// Concatenate: joins tensors along an axis (keras.layers.Concatenate).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// The options of ConcatenateLayer.
struct ConcatenateOptions {
  int axis = -1;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
  }
};

// Concatenates a list of tensors along `axis`. They have the same dtype, and their shapes agree
// except for `axis`. Throws ValueError for other shapes.
// If any input has a mask, so has the output. The mask has the output's shape without the last
// dimension. It is true where at least one element is not excluded by its input's mask. A tensor
// without a mask excludes nothing.
class ConcatenateLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Concatenate";
  using Options = ConcatenateOptions;
  explicit ConcatenateLayer(Options options)
      : Layer(kClassName, options), options_(std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Concatenate = LayerHandle<ConcatenateLayer>;
}  // namespace layers

}  // namespace keel
