// RowFunction: an activation applied in place to a row of floats, bitwise equal to
// layers/activations.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/layers/activations.h>

namespace keel {

// An activation function with its parameter.
class RowFunction {
 public:
  enum class Kind {
    kLinear,
    kRelu,
    kLeakyRelu,
    kElu,
    kSigmoid,
    kTanh,
    kSilu,
    kSoftplus,
    kExp,
    kGelu,
    kSoftmax
  };

  RowFunction(Kind kind = Kind::kLinear, double parameter = 0)  // NOLINT: implicit
      : kind_(kind), parameter_(static_cast<float>(parameter)) {}
  // Returns nothing for an activation without a row function; plans then call the layer.
  static std::optional<RowFunction> of(const Activation& activation);

  Kind kind() const { return kind_; }
  // Returns Keras's name of the activation.
  std::string name() const;
  // Applies the function in place to n values; softmax normalizes over all n values.
  void apply(float* row, int64_t n) const;

 private:
  Kind kind_;
  float parameter_;
};

}  // namespace keel
