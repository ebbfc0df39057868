// Small core layers: Identity and Masking.
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of Identity.
struct IdentityOptions {
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// Returns its input unchanged: a tensor of any layout, or a structure of tensors
// (keras.layers.Identity).
class IdentityLayer final : public OptionsLayer<IdentityOptions, Layer> {
 public:
  static constexpr char kClassName[] = "Identity";
  explicit IdentityLayer(Options options) : OptionsLayer(kClassName, std::move(options)) {}
  bool supports_masking() const override { return true; }
  std::optional<PlanValues> plan(Planner& planner, const PlanValues& inputs) const override;

 private:
  Tensors call(const Tensors& inputs, const CallContext&) override { return inputs; }
};

// Options of Masking.
struct MaskingOptions {
  double mask_value = 0.0;  // value of all features of a padding step
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static constexpr void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("mask_value", self.mask_value);
  }
};

// Masks the padding steps of a sequence (keras.layers.Masking): where all features equal
// mask_value, they become 0 and the output's mask is false. Input: [batch, ..., features] of rank 2
// or more. The output has the same shape. Its mask has that shape without the last dimension.
class MaskingLayer final : public OptionsLayer<MaskingOptions> {
 public:
  static constexpr char kClassName[] = "Masking";
  explicit MaskingLayer(Options options);

  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors& outputs) const override;

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;
  // Returns false for the masked steps. With keepdims the shape is [..., 1].
  Tensor steps_that_count(const Tensor& x, bool keepdims) const;
};

namespace layers {
// Handles to the layers, under Keras's names.
using Identity = LayerHandle<IdentityLayer>;
using Masking = LayerHandle<MaskingLayer>;
}  // namespace layers

}  // namespace keel
