// ZeroPadding1D: zeros at both ends of sequences (keras.layers.ZeroPadding1D).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

struct ZeroPadding1DOptions {
  Padding1D padding = 1;                      // >= 0: zeros before and after
  std::string data_format = "channels_last";  // or "channels_first": the steps stand at axis 2
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("padding", self.padding);
    field("data_format", self.data_format);
  }
};

// Input [batch, steps, features]; output [batch, before + steps + after, features]. Any dtype.
class ZeroPadding1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "ZeroPadding1D";
  using Options = ZeroPadding1DOptions;
  // ValueError for a negative number and another data_format.
  explicit ZeroPadding1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError for an input of another rank.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
  const int steps_axis_;
};

namespace layers {
using ZeroPadding1D = LayerHandle<ZeroPadding1DLayer>;
}

}  // namespace keel
