// ZeroPadding1D: adds zeros at both ends of sequences (keras.layers.ZeroPadding1D).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of ZeroPadding1D.
struct ZeroPadding1DOptions {
  Padding1D padding = 1;                      // number of zeros before and after, >= 0
  std::string data_format = "channels_last";  // or "channels_first": steps are axis 2
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("padding", self.padding);
    field("data_format", self.data_format);
  }
};

// Input [batch, steps, features]; output [batch, before + steps + after, features]. Accepts any
// dtype.
class ZeroPadding1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "ZeroPadding1D";
  using Options = ZeroPadding1DOptions;
  // Throws ValueError for a negative number and an unknown data_format.
  explicit ZeroPadding1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the input has rank 3.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
  const int steps_axis_;
};

namespace layers {
using ZeroPadding1D = LayerHandle<ZeroPadding1DLayer>;
}

}  // namespace keel
