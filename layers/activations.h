// Activations: functions applied to a layer's result, by Keras's names.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/config/config.h>
#include <keel/framework/tensor.h>

namespace keel {

class Activation;
namespace activations {
Activation get(const std::string& name, const Config& arguments);
}

// What options hold: a name ("relu"), a name with Keras's arguments (activations::get), or a
// function of one's own with a name. Immutable; copies share the function.
class Activation {
 public:
  using Function = std::function<Tensor(const Tensor&)>;

  Activation(const char* name);         // NOLINT: implicit. ValueError if unknown
  Activation(const std::string& name);  // NOLINT: implicit. idem
  // Files hold the name only: activations::add makes it known to readers.
  Activation(std::string name, Function function);
  // `arguments`: those of the name's function that the function was made with, by name.
  Activation(std::string name, Config arguments, Function function);

  // The function of a floating tensor; the result has its shape, except for glu. May be symbolic.
  Tensor operator()(const Tensor& x) const { return function_(x); }
  const std::string& name() const { return name_; }
  const Config& arguments() const { return arguments_; }  // a dict, empty for the defaults
  bool is_linear() const { return name_ == "linear"; }
  // Whether it is what activations::get gives for the name alone, not a function of one's own that
  // only bears it.
  bool is(const std::string& name) const {
    return is_known_ && name_ == name && arguments_.entries().empty();
  }

 private:
  friend Activation activations::get(const std::string& name, const Config& arguments);

  std::string name_;
  Config arguments_ = Config::dict();
  Function function_;
  bool is_known_ = false;
};

// The name; with arguments, the layer object that Keras writes in its place where there is one
// (ReLU, LeakyReLU, ELU, Softmax), else {"class_name": name, "config": arguments}. hard_sigmoid
// with a slope of its own is a Sequential of Rescaling and ReLU, which Keras 3 calls as an
// activation.
Config encode(const Activation& activation);
// Those, null (linear), or Keras's {"class_name": "function", "config": name}. NotImplementedError
// for an object of another class.
void decode(const Config& config, Activation& activation);

namespace activations {

// Every function below by its name, with default arguments; and "hard_swish" for hard_silu, "swish"
// for silu. ValueError for another name.
Activation get(const std::string& name);
// With arguments by Keras's names: get("relu", {{"max_value", 6.0}}). ValueError for an argument
// that the function does not have.
Activation get(const std::string& name, const Config& arguments);

// Makes a function of one's own known by name. ValueError if the name is taken. Thread safe.
void add(const std::string& name, Activation::Function function);
// Those that get() knows, in ascending order.
std::vector<std::string> names();

// ---- Elementwise. In formulas, p is max(x, 0) and m is min(x, 0).
// x above the threshold and up to max_value; below the threshold, negative_slope (x - threshold).
Tensor relu(const Tensor& x, double negative_slope = 0, std::optional<double> max_value = {},
            double threshold = 0);
Tensor relu6(const Tensor& x);                                    // min(p, 6)
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.2);  // p + negative_slope m
Tensor elu(const Tensor& x, double alpha = 1);                    // p + alpha (e^m - 1)
Tensor celu(const Tensor& x, double alpha = 1);                   // p + alpha (e^(m / alpha) - 1)
Tensor selu(const Tensor& x);                                     // 1.0507 elu(x, 1.67326)
// x P(N(0, 1) <= x), by erf; approximate: by tanh.
Tensor gelu(const Tensor& x, bool approximate = false);
Tensor silu(const Tensor& x);         // x sigmoid(x)
Tensor mish(const Tensor& x);         // x tanh(softplus(x))
Tensor sigmoid(const Tensor& x);      // 1 / (1 + e^-x)
Tensor log_sigmoid(const Tensor& x);  // log(sigmoid(x)), without overflow
// slope x + 1 / 2 in [0, 1]. Keras 1 and 2 have the slope 0.2, Keras 3 has 1 / 6.
Tensor hard_sigmoid(const Tensor& x, double slope = 1.0 / 6);
Tensor hard_silu(const Tensor& x);  // x hard_sigmoid(x)
Tensor tanh(const Tensor& x);
Tensor hard_tanh(const Tensor& x);                            // x in [-1, 1]
Tensor tanh_shrink(const Tensor& x);                          // x - tanh(x)
Tensor hard_shrink(const Tensor& x, double threshold = 0.5);  // x where |x| > threshold, else 0
Tensor soft_shrink(const Tensor& x, double threshold = 0.5);  // x moved to 0 by threshold
Tensor threshold(const Tensor& x, double threshold, double default_value);  // x above it
Tensor softplus(const Tensor& x);                  // log(1 + e^x), without overflow
Tensor softsign(const Tensor& x);                  // x / (1 + |x|)
Tensor squareplus(const Tensor& x, double b = 4);  // (x + sqrt(x^2 + b)) / 2
Tensor sparse_plus(const Tensor& x);               // 0 up to -1, (x + 1)^2 / 4 up to 1, x beyond
Tensor sparse_sigmoid(const Tensor& x);            // (x + 1) / 2 in [0, 1]
Tensor exponential(const Tensor& x);
Tensor linear(const Tensor& x);

// ---- Along an axis.
Tensor softmax(const Tensor& x, int axis = -1);
Tensor log_softmax(const Tensor& x, int axis = -1);
Tensor sparsemax(const Tensor& x, int axis = -1);  // as Keras computes it: rows may not sum to 1
// The first half times the sigmoid of the second: half as long as x. ValueError if that is odd.
Tensor glu(const Tensor& x, int axis = -1);

}  // namespace activations
}  // namespace keel
