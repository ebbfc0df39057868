#include "layers/activations.h"

#include <limits>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>

#include "autodiff/ops.h"

namespace keel {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Tensor constant(double value, DType dtype) {
  return visit_floating(dtype, "activation", [&]<class T>(const T&) {
    return Tensor::scalar<T>(static_cast<T>(value));
  });
}

// min(x, 0) with gradient 1 at 0.
Tensor negative_part(const Tensor& x) { return ops::clip_by_value(x, -kInfinity, 0); }

// e^x - 1 without cancellation near 0: with t = tanh(x / 2) it is 2 t / (1 - t).
Tensor expm1_of_negative(const Tensor& x) {
  const Tensor t = ops::tanh(ops::scale(x, 0.5));
  return ops::scale(ops::divide(t, ops::shift(ops::negative(t), 1)), 2);
}

Tensor elu(const Tensor& x) { return ops::relu(x) + expm1_of_negative(negative_part(x)); }

Tensor selu(const Tensor& x) {
  constexpr double kAlpha = 1.6732632423543772;
  constexpr double kScale = 1.0507009873554805;
  return ops::scale(ops::relu(x), kScale) +
         ops::scale(expm1_of_negative(negative_part(x)), kScale * kAlpha);
}

Tensor leaky_relu(const Tensor& x) { return ops::relu(x) + ops::scale(negative_part(x), 0.2); }

// Into [low, high] with gradient 0 at the bounds, as Keras has it for some functions;
// clip_by_value has 1 there.
Tensor saturate(const Tensor& x, double low, double high) {
  const Tensor bounded = ops::stop_gradient(ops::clip_by_value(x, low, high));
  const Tensor above = ops::greater(x, constant(low, x.dtype()));
  const Tensor below = ops::less(x, constant(high, x.dtype()));
  return ops::where(above, ops::where(below, x, bounded), bounded);
}

Tensor relu6(const Tensor& x) { return saturate(x, 0, 6); }
Tensor hard_sigmoid(const Tensor& x) { return ops::scale(relu6(ops::shift(x, 3)), 1.0 / 6); }
Tensor hard_silu(const Tensor& x) {
  return x * ops::scale(ops::clip_by_value(ops::shift(x, 3), 0, 6), 1.0 / 6);
}
Tensor hard_tanh(const Tensor& x) { return saturate(x, -1, 1); }

Tensor gelu(const Tensor& x) {
  const Tensor phi = ops::shift(ops::erf(ops::scale(x, std::numbers::sqrt2 / 2)), 1);
  return ops::scale(x * phi, 0.5);
}

Tensor silu(const Tensor& x) { return x * ops::sigmoid(x); }
Tensor softsign(const Tensor& x) { return ops::divide(x, ops::shift(ops::abs(x), 1)); }
Tensor mish(const Tensor& x) { return x * ops::tanh(ops::softplus(x)); }
Tensor log_sigmoid(const Tensor& x) { return -ops::softplus(-x); }
Tensor tanh_shrink(const Tensor& x) { return x - ops::tanh(x); }

Tensor hard_shrink(const Tensor& x) {
  const Tensor far = ops::greater(ops::abs(x), constant(0.5, x.dtype()));
  return ops::where(far, x, ops::zeros_like(x));
}

Tensor soft_shrink(const Tensor& x) {
  return ops::relu(ops::shift(x, -0.5)) - ops::relu(ops::shift(ops::negative(x), -0.5));
}

// (x + sqrt(x^2 + 4)) / 2.
Tensor squareplus(const Tensor& x) {
  return ops::scale(x + ops::sqrt(ops::shift(ops::square(x), 4)), 0.5);
}

Tensor sparse_sigmoid(const Tensor& x) { return ops::scale(ops::shift(hard_tanh(x), 1), 0.5); }

// 0 up to -1, (x + 1)^2 / 4 up to 1, x beyond.
Tensor sparse_plus(const Tensor& x) {
  const Tensor middle = ops::scale(ops::square(ops::shift(ops::clip_by_value(x, -1, 1), 1)), 0.25);
  return middle + ops::relu(ops::shift(x, -1));
}

using Functions = std::map<std::string, Activation::Function>;

Functions builtin_functions() {
  Functions all = {
      {"celu", elu},
      {"elu", elu},
      {"exponential", ops::exp},
      {"gelu", gelu},
      {"hard_shrink", hard_shrink},
      {"hard_sigmoid", hard_sigmoid},
      {"hard_silu", hard_silu},
      {"hard_swish", hard_silu},
      {"hard_tanh", hard_tanh},
      {"leaky_relu", leaky_relu},
      {"linear", [](const Tensor& x) { return x; }},
      {"log_sigmoid", log_sigmoid},
      {"log_softmax", [](const Tensor& x) { return ops::log_softmax(x); }},
      {"mish", mish},
      {"relu", ops::relu},
      {"relu6", relu6},
      {"selu", selu},
      {"sigmoid", ops::sigmoid},
      {"silu", silu},
      {"soft_shrink", soft_shrink},
      {"softmax", [](const Tensor& x) { return ops::softmax(x); }},
      {"softplus", ops::softplus},
      {"softsign", softsign},
      {"sparse_plus", sparse_plus},
      {"sparse_sigmoid", sparse_sigmoid},
      {"squareplus", squareplus},
      {"swish", silu},
      {"tanh", ops::tanh},
      {"tanh_shrink", tanh_shrink},
  };
  return all;
}

struct KnownFunctions {
  std::mutex mutex;  // guards functions
  Functions functions = builtin_functions();
};

KnownFunctions& known() {
  static KnownFunctions instance;
  return instance;
}

}  // namespace

Activation::Activation(const char* name) : Activation(std::string(name)) {}
Activation::Activation(const std::string& name) : Activation(activations::get(name)) {}
Activation::Activation(std::string name, Function function)
    : name_(std::move(name)), function_(std::move(function)) {}

Config encode(const Activation& activation) { return activation.name(); }

void decode(const Config& config, Activation& activation) {
  if (config.is_null()) {
    activation = "linear";
  } else if (config.is_dict()) {
    if (!config["config"].is_string()) {
      throw NotImplementedError("activation: an object of class ", config["class_name"].string(),
                                " is not offered; use its name, or the layer of that class");
    }
    activation = Activation(config["config"].string());
  } else {
    activation = Activation(config.string());
  }
}

namespace activations {

Activation get(const std::string& name) {
  KnownFunctions& all = known();
  const std::lock_guard lock(all.mutex);
  const auto it = all.functions.find(name);
  if (it == all.functions.end()) {
    throw ValueError("activation: unknown name '", name, "'; make it known by activations::add");
  }
  return {name, it->second};
}

void add(const std::string& name, Activation::Function function) {
  KnownFunctions& all = known();
  const std::lock_guard lock(all.mutex);
  if (!all.functions.emplace(name, std::move(function)).second) {
    throw ValueError("activations.add: the name '", name, "' is taken");
  }
}

}  // namespace activations
}  // namespace keel
