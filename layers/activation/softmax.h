// Softmax: numbers as probabilities (keras.layers.Softmax).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

struct SoftmaxOptions {
  Axes axis = -1;  // along which the results sum to 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
  }
};

// e^x / sum of e^x along the axes. What the input's mask leaves out is 0 and counts for nothing; a
// mask of a lower rank is one of all that stands at its positions. Output of the input's shape,
// integers cast to the layer's dtype first. ValueError for an axis out of range.
class SoftmaxLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Softmax";
  using Options = SoftmaxOptions;
  explicit SoftmaxLayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {}
  bool supports_masking() const override { return true; }
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Softmax = LayerHandle<SoftmaxLayer>;
}

}  // namespace keel
