// Concatenate: joins tensors along an axis (keras.layers.Concatenate).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

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

// Input: a list of tensors of one dtype whose shapes agree but for `axis`. Output: all of them,
// one after the other along it. ValueError for other shapes.
// If a tensor has a mask, so has the output: of its dimensions but the last, true where one of the
// elements counts. Those of tensors without a mask all do.
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
using Concatenate = LayerHandle<ConcatenateLayer>;
}

}  // namespace keel
