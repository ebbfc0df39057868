// Masking: marks the steps of a sequence that are padding (keras.layers.Masking).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct MaskingOptions {
  double mask_value = 0.0;
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("mask_value", self.mask_value);
  }
};

// A step whose features all equal mask_value does not count: its features become 0, and the
// result's mask is false there. Input [batch, ..., features] of at least rank 2; output the same
// shape, its mask that without the last dimension.
class MaskingLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Masking";
  using Options = MaskingOptions;
  explicit MaskingLayer(Options options);

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;
  // Of rank [..., 1] if keepdims.
  Tensor steps_that_count(const Tensor& x, bool keepdims) const;

  const Options options_;
};

namespace layers {
using Masking = LayerHandle<MaskingLayer>;
}

}  // namespace keel
