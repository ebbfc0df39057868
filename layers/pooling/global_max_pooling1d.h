// GlobalMaxPooling1D: the greatest of a sequence (keras.layers.GlobalMaxPooling1D).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct GlobalMaxPooling1DOptions {
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

// Input [batch, steps, features]; output [batch, features], the greatest over the steps. As in
// Keras, masks count for nothing here. The gradient of equal ones is divided evenly.
class GlobalMaxPooling1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "GlobalMaxPooling1D";
  using Options = GlobalMaxPooling1DOptions;
  // ValueError for another data_format.
  explicit GlobalMaxPooling1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError for an input of another rank than 3.
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const int steps_axis_;
};

namespace layers {
using GlobalMaxPooling1D = LayerHandle<GlobalMaxPooling1DLayer>;
}

}  // namespace keel
