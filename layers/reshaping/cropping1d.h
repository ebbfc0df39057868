// Cropping1D: removes steps at both ends of sequences (keras.layers.Cropping1D).
#pragma once

#include <string>

#include <keel/layers/axes.h>
#include <keel/layers/layer.h>

namespace keel {

// Options of Cropping1D.
struct Cropping1DOptions {
  Padding1D cropping = 1;  // number of steps removed at the beginning and at the end, >= 0
  std::string name = {};
  bool trainable = true;
  DTypePolicy dtype = {};

  static void fields(auto& self, auto&& field) {
    base_fields(self, field);
    field("cropping", self.cropping);
  }
};

// Input [batch, steps, features]; output [batch, remaining steps, features]. Accepts any dtype.
class Cropping1DLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Cropping1D";
  using Options = Cropping1DOptions;
  // Throws ValueError for a negative number.
  explicit Cropping1DLayer(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  // Throws ValueError unless the input has rank 3, and if no step remains.
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Cropping1D = LayerHandle<Cropping1DLayer>;
}

}  // namespace keel
