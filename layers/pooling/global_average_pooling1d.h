// GlobalAveragePooling1D: the mean of a sequence (keras.layers.GlobalAveragePooling1D).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct GlobalAveragePooling1DOptions {
  std::string data_format = "channels_last";  // or "channels_first": the steps stand at axis 2
  bool keepdims = false;                      // keep the steps' dimension, as 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("keepdims", self.keepdims);
  }
};

// Input [batch, steps, features]; output [batch, features], the mean over the steps, or over those
// that the input's mask, [batch, steps], counts. As in Keras, no such step gives NaN. The output
// has no mask.
class GlobalAveragePooling1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "GlobalAveragePooling1D";
  using Options = GlobalAveragePooling1DOptions;
  // ValueError for another data_format.
  explicit GlobalAveragePooling1DLayer(Options options);
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors&, const Tensors&) const override { return {}; }
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError for an input of another rank than 3 and a mask of another than 2.
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const int steps_axis_;
};

namespace layers {
using GlobalAveragePooling1D = LayerHandle<GlobalAveragePooling1DLayer>;
}

}  // namespace keel
