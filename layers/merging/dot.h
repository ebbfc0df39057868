// Dot: products of two tensors, sample by sample (keras.layers.Dot).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

struct DotOptions {
  Axes axes = 1;           // of both tensors, or {of the first, of the second}; never the batch
  bool normalize = false;  // scale to length 1 along the axis first: the cosine
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axes", self.axes);
    field("normalize", self.normalize);
  }
};

// Sums the products of x and y over one axis of each, sample by sample. Input: a list of x
// [batch, I..., k, ...] and y [batch, J..., k, ...] of one floating dtype; output the other
// dimensions of x, then those of y: [batch, I..., J...], or [batch, 1] where none is left.
// It has no mask.
class DotLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Dot";
  using Options = DotOptions;
  // ValueError unless axes are one or two.
  explicit DotLayer(Options options);
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors&, const Tensors&) const override { return {}; }
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError unless there are two tensors of rank 2 or more, for an axis that is the batch or
  // out of range, and for lengths or batches that differ.
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Dot = LayerHandle<DotLayer>;
}

}  // namespace keel
