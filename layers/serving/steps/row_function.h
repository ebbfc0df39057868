// RowFunction: what an activation does to a row of floats, where it is, with the bits of
// layers/activations.h.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include <keel/layers/activations.h>

namespace keel {

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
  // Nothing for an activation that has no such function; then plans call the layer.
  static std::optional<RowFunction> of(const Activation& activation);

  Kind kind() const { return kind_; }
  std::string name() const;
  // In place, on n values; softmax is over all of them.
  void apply(float* row, int64_t n) const;

 private:
  Kind kind_;
  float parameter_;
};

}  // namespace keel
