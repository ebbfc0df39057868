// UpSampling1D: repeats each step of a sequence (keras.layers.UpSampling1D).
#pragma once

#include <string>

#include <keel/layers/layer.h>

namespace keel {

// Options of UpSampling1D.
struct UpSampling1DOptions {
  int64_t size = 2;  // number of repetitions of a step, > 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("size", self.size);
  }
};

// Input [batch, steps, features]; output [batch, steps * size, features]. Accepts any dtype.
class UpSampling1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "UpSampling1D";
  using Options = UpSampling1DOptions;
  // Throws ValueError unless size > 0.
  explicit UpSampling1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the input has rank 3.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using UpSampling1D = LayerHandle<UpSampling1DLayer>;
}

}  // namespace keel
