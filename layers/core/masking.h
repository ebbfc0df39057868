// Masking: marks the padding steps of a sequence (keras.layers.Masking).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// The options of MaskingLayer.
struct MaskingOptions {
  double mask_value = 0.0;  // value of all features of a padding step
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("mask_value", self.mask_value);
  }
};

// Masks the steps whose features all equal mask_value: their features become 0, and the output's
// mask is false there. Input: [batch, ..., features] of rank 2 or more. The output has the same
// shape. Its mask has that shape without the last dimension.
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
  // Returns false for the masked steps. With keepdims the shape is [..., 1].
  Tensor steps_that_count(const Tensor& x, bool keepdims) const;

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Masking = LayerHandle<MaskingLayer>;
}  // namespace layers

}  // namespace keel
