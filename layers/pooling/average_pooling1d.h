// AveragePooling1D: averages windows of a sequence (keras.layers.AveragePooling1D).
#pragma once

#include <keel/layers/pooling/pooling1d.h>

namespace keel {

using AveragePooling1DOptions = Pooling1DOptions;

// Averages the steps of each window; steps beyond the ends of the sequence are not counted.
class AveragePooling1DLayer final : public Pooling1DLayer {
 public:
  static constexpr char kClassName[] = "AveragePooling1D";
  explicit AveragePooling1DLayer(Options options)
      : Pooling1DLayer(kClassName, std::move(options)) {}

 private:
  Tensor pool(const std::vector<Tensor>& elements, const Windows& windows) const override;
  double beyond() const override { return 0; }
};

namespace layers {
using AveragePooling1D = LayerHandle<AveragePooling1DLayer>;
}

}  // namespace keel
