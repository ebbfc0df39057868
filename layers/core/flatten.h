// Flatten: one row of values per sample (keras.layers.Flatten).
#pragma once

#include <string>

#include "layers/layer.h"

namespace keel {

struct FlattenOptions {
  std::string name = {};
  bool trainable = true;
  DType dtype = DType::kFloat32;

  static void fields(auto& self, auto&& field) { base_fields(self, field); }
};

// Input [batch, dims...]; output [batch, product of dims], [batch, 1] for a vector. Any dtype.
// ValueError for a scalar.
class FlattenLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "Flatten";
  using Options = FlattenOptions;
  explicit FlattenLayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& x, const CallContext& context) override;

  const Options options_;
};

namespace layers {
using Flatten = LayerHandle<FlattenLayer>;
}

}  // namespace keel
