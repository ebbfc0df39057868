// Dot: products of two tensors for each sample (keras.layers.Dot).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of DotLayer.
struct DotOptions {
  // Axis of both tensors, or {axis of the first, axis of the second}; never the batch.
  Axes axes = 1;
  bool normalize = false;  // scale to length 1 along the axis first, which gives the cosine
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axes", self.axes);
    field("normalize", self.normalize);
  }
};

// Sums the products of x and y over one axis of each, for each sample. Input: a list of x [batch,
// I..., k, ...] and y [batch, J..., k, ...] of the same floating-point dtype. Output: the other
// dimensions of x followed by those of y, [batch, I..., J...], or [batch, 1] if there are none. The
// output has no mask.
class DotLayer final : public Layer {
 public:
  static constexpr char kClassName[] = "Dot";
  using Options = DotOptions;
  // Throws ValueError unless there are one or two axes.
  explicit DotLayer(Options options);
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors&, const Tensors&) const override { return {}; }
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless there are two tensors of rank 2 or more, for an axis that is the batch
  // or out of range, and if the lengths of the axes or the batch sizes differ.
  Tensors call(const Tensors& inputs, const CallContext& context) override;

  const Options options_;
};

namespace layers {
// A handle to the layer, under Keras's name.
using Dot = LayerHandle<DotLayer>;
}  // namespace layers

}  // namespace keel
