// MaxPooling1D: takes the maximum of windows of a sequence (keras.layers.MaxPooling1D).
#pragma once

#include <limits>

#include <keel/layers/pooling/pooling1d.h>

namespace keel {

using MaxPooling1DOptions = Pooling1DOptions;

// Takes the maximum of each window. The gradient goes to the first of equal maxima.
class MaxPooling1DLayer final : public Pooling1DLayer {
 public:
  static constexpr char kClassName[] = "MaxPooling1D";
  explicit MaxPooling1DLayer(Options options) : Pooling1DLayer(kClassName, std::move(options)) {}

 private:
  Tensor pool(const std::vector<Tensor>& elements, const Windows& windows) const override;
  double beyond() const override { return -std::numeric_limits<double>::infinity(); }
};

namespace layers {
using MaxPooling1D = LayerHandle<MaxPooling1DLayer>;
}

}  // namespace keel
