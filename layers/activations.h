// Activations: functions applied to a layer's result, by Keras's names.
#pragma once

#include <functional>
#include <string>

#include "framework/config.h"
#include "framework/tensor.h"

namespace keel {

// What options hold: a name ("relu"), or a function of one's own with a name. Immutable; copies
// share the function.
class Activation {
 public:
  using Function = std::function<Tensor(const Tensor&)>;

  Activation(const char* name);         // NOLINT: implicit. ValueError if unknown
  Activation(const std::string& name);  // NOLINT: implicit. idem
  // Files hold the name only: activations::add makes it known to readers.
  Activation(std::string name, Function function);

  // The function of a floating tensor; the result has its shape. May be symbolic.
  Tensor operator()(const Tensor& x) const { return function_(x); }
  const std::string& name() const { return name_; }
  bool is_linear() const { return name_ == "linear"; }

 private:
  std::string name_;
  Function function_;
};

Config encode(const Activation& activation);  // the name
// A name, null (linear), or Keras's {"class_name": "function", "config": name}.
void decode(const Config& config, Activation& activation);

namespace activations {

// celu, elu, exponential, gelu (with erf), hard_shrink, hard_sigmoid, hard_silu (hard_swish),
// hard_tanh, leaky_relu (slope 0.2), linear, log_sigmoid, log_softmax, mish, relu, relu6, selu,
// sigmoid, silu (swish), soft_shrink, softmax, softplus, softsign, sparse_plus, sparse_sigmoid,
// squareplus, tanh, tanh_shrink. ValueError for another name.
Activation get(const std::string& name);

// Makes a function of one's own known by name. ValueError if the name is taken. Thread safe.
void add(const std::string& name, Activation::Function function);

}  // namespace activations
}  // namespace keel
