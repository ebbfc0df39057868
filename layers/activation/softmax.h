// Softmax: converts numbers to probabilities (keras.layers.Softmax).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// The options of SoftmaxLayer.
struct SoftmaxOptions {
  Axes axis = -1;  // axes along which the results sum to 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("axis", self.axis);
  }
};

// Computes e^x / sum of e^x along the axes. Elements that the input's mask excludes are 0 and do
// not contribute to the sum. A mask of lower rank applies to all elements at its positions. The
// output has the shape of the input. Integers are first cast to the layer's dtype. Throws
// ValueError for an axis out of range.
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
// A handle to the layer, under Keras's name.
using Softmax = LayerHandle<SoftmaxLayer>;
}  // namespace layers

}  // namespace keel
