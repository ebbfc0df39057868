// Cropping1D: leaves out steps at both ends of sequences (keras.layers.Cropping1D).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

struct Cropping1DOptions {
  Padding1D cropping = 1;  // >= 0: steps left out at the beginning and at the end
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("cropping", self.cropping);
  }
};

// Input [batch, steps, features]; output the steps in between. Any dtype.
class Cropping1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Cropping1D";
  using Options = Cropping1DOptions;
  // ValueError for a negative number.
  explicit Cropping1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // ValueError for an input of another rank, and if no step is left.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Cropping1D = LayerHandle<Cropping1DLayer>;
}

}  // namespace keel
