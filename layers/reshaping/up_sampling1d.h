// UpSampling1D: each step of a sequence several times (keras.layers.UpSampling1D).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

struct UpSampling1DOptions {
  int64_t size = 2;  // > 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("size", self.size);
  }
};

// Input [batch, steps, features]; output [batch, steps * size, features]. Any dtype.
class UpSampling1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "UpSampling1D";
  using Options = UpSampling1DOptions;
  // ValueError unless size > 0.
  explicit UpSampling1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError for an input of another rank.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using UpSampling1D = LayerHandle<UpSampling1DLayer>;
}

}  // namespace keel
