// GlobalMaxPooling1D: takes the maximum over the steps of a sequence
// (keras.layers.GlobalMaxPooling1D).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of GlobalMaxPooling1D.
struct GlobalMaxPooling1DOptions {
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

// Input [batch, steps, features]; output [batch, features], the maximum over the steps. As in
// Keras, masks are ignored. The gradient is divided evenly among equal maxima.
class GlobalMaxPooling1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "GlobalMaxPooling1D";
  using Options = GlobalMaxPooling1DOptions;
  // Throws ValueError for an unknown data_format.
  explicit GlobalMaxPooling1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the input has rank 3.
  Tensor call(const Tensor& input, const CallContext& context) override;

  const Options options_;
  const int steps_axis_;
};

namespace layers {
using GlobalMaxPooling1D = LayerHandle<GlobalMaxPooling1DLayer>;
}

}  // namespace keel
