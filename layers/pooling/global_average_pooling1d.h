// GlobalAveragePooling1D: averages the steps of a sequence (keras.layers.GlobalAveragePooling1D).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of GlobalAveragePooling1D.
struct GlobalAveragePooling1DOptions {
  std::string data_format = "channels_last";  // or "channels_first": steps are axis 2
  bool keepdims = false;                      // keep the dimension of the steps, with size 1
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("data_format", self.data_format);
    field("keepdims", self.keepdims);
  }
};

// Input [batch, steps, features]; output [batch, features], the mean over the steps, or over the
// steps that the input's mask [batch, steps] selects. As in Keras, the result is NaN if there is no
// such step. The output has no mask.
class GlobalAveragePooling1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "GlobalAveragePooling1D";
  using Options = GlobalAveragePooling1DOptions;
  // Throws ValueError for an unknown data_format.
  explicit GlobalAveragePooling1DLayer(Options options);
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors&, const Tensors&) const override { return {}; }
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the input has rank 3 and the mask rank 2.
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const int steps_axis_;
};

namespace layers {
using GlobalAveragePooling1D = LayerHandle<GlobalAveragePooling1DLayer>;
}

}  // namespace keel
