// Activation functions under Keras's names, and the type of the layers' `activation` options.
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

// The value of an `activation` option: a name ("relu"), a name with Keras's arguments (see
// activations::get), or your own function with a name. Immutable; copies share the function.
class Activation {
 public:
  // A differentiable function of a floating-point tensor, which may be symbolic.
  using Function = std::function<Tensor(const Tensor&)>;

  // Looks up the name (activations::get). Throws ValueError if it is unknown.
  Activation(const char* name);         // NOLINT: implicit
  Activation(const std::string& name);  // NOLINT: implicit
  // Wraps your own function. Files hold only the name, so register the function with
  // activations::add before you read a file that names it.
  Activation(std::string name, Function function);
  // `arguments` holds the arguments, by name, that `function` was made with.
  Activation(std::string name, Config arguments, Function function);

  // Applies the function to a floating-point tensor, which may be symbolic. The result has the
  // shape of `x`, except for glu.
  Tensor operator()(const Tensor& x) const { return function_(x); }
  const std::string& name() const { return name_; }
  const Config& arguments() const { return arguments_; }  // a dict, empty for the defaults
  bool is_linear() const { return name_ == "linear"; }    // true if the result is the input
  // Returns true if this is the built-in or registered function `name` with default arguments. Your
  // own function that merely has the same name returns false.
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

// Encodes an activation for a config. An activation without arguments is its name. With arguments,
// it is the layer object that Keras writes for it if there is one (ReLU, LeakyReLU, ELU, Softmax),
// else {"class_name": name, "config": arguments}. A hard_sigmoid with a slope other than the
// default is written as a Sequential of Rescaling and ReLU, which Keras 3 can call as an
// activation.
Config encode(const Activation& activation);
// Decodes the output of encode(), null (linear), or Keras's {"class_name": "function", "config":
// name}. Throws NotImplementedError for an object of another class.
void decode(const Config& config, Activation& activation);

namespace activations {

// Returns the function below that has this name, with default arguments, or one registered with
// add(). "hard_swish" is an alias of hard_silu, and "swish" of silu. Throws ValueError for an
// unknown name.
Activation get(const std::string& name);
// Returns the function with arguments under Keras's names: get("relu", {{"max_value", 6.0}}).
// Throws ValueError for an argument that the function does not have.
Activation get(const std::string& name, const Config& arguments);

// Registers your own function under `name`. Throws ValueError if the name is taken. Thread safe.
void add(const std::string& name, Activation::Function function);
// Returns the names that get() accepts, in ascending order.
std::vector<std::string> names();

// ---- Elementwise functions. In the formulas, p is max(x, 0) and m is min(x, 0).
// Returns min(x, max_value) where x is above the threshold, else negative_slope (x - threshold).
Tensor relu(const Tensor& x, double negative_slope = 0, std::optional<double> max_value = {},
            double threshold = 0);
Tensor relu6(const Tensor& x);                                    // min(p, 6)
Tensor leaky_relu(const Tensor& x, double negative_slope = 0.2);  // p + negative_slope m
Tensor elu(const Tensor& x, double alpha = 1);                    // p + alpha (e^m - 1)
Tensor celu(const Tensor& x, double alpha = 1);                   // p + alpha (e^(m / alpha) - 1)
Tensor selu(const Tensor& x);                                     // 1.0507 elu(x, 1.67326)
// Computes x P(N(0, 1) <= x) with erf, or with tanh if `approximate`.
Tensor gelu(const Tensor& x, bool approximate = false);
Tensor silu(const Tensor& x);         // x sigmoid(x)
Tensor mish(const Tensor& x);         // x tanh(softplus(x))
Tensor sigmoid(const Tensor& x);      // 1 / (1 + e^-x)
Tensor log_sigmoid(const Tensor& x);  // log(sigmoid(x)), without overflow
// Computes slope x + 1 / 2, clipped to [0, 1]. The slope is 0.2 in Keras 1 and 2, and 1 / 6 in
// Keras 3.
Tensor hard_sigmoid(const Tensor& x, double slope = 1.0 / 6);
Tensor hard_silu(const Tensor& x);                            // x hard_sigmoid(x)
Tensor tanh(const Tensor& x);                                 // (e^x - e^-x) / (e^x + e^-x)
Tensor hard_tanh(const Tensor& x);                            // x clipped to [-1, 1]
Tensor tanh_shrink(const Tensor& x);                          // x - tanh(x)
Tensor hard_shrink(const Tensor& x, double threshold = 0.5);  // x where |x| > threshold, else 0
// x moved toward 0 by threshold, at most to 0
Tensor soft_shrink(const Tensor& x, double threshold = 0.5);
// x where x > threshold, else default_value
Tensor threshold(const Tensor& x, double threshold, double default_value);
Tensor softplus(const Tensor& x);                  // log(1 + e^x), without overflow
Tensor softsign(const Tensor& x);                  // x / (1 + |x|)
Tensor squareplus(const Tensor& x, double b = 4);  // (x + sqrt(x^2 + b)) / 2
Tensor sparse_plus(const Tensor& x);               // 0 for x < -1, (x + 1)^2 / 4 up to 1, x above 1
Tensor sparse_sigmoid(const Tensor& x);            // (x + 1) / 2, clipped to [0, 1]
Tensor exponential(const Tensor& x);               // e^x
Tensor linear(const Tensor& x);                    // x

// ---- Functions along an axis.
Tensor softmax(const Tensor& x, int axis = -1);      // e^x / sum of e^x
Tensor log_softmax(const Tensor& x, int axis = -1);  // log(softmax(x)), without overflow
Tensor sparsemax(const Tensor& x, int axis = -1);    // Keras's algorithm: rows may not sum to 1
// Splits x into halves along the axis and returns the first half times the sigmoid of the second.
// The axis becomes half as long. Throws ValueError if its length is odd.
Tensor glu(const Tensor& x, int axis = -1);

}  // namespace activations
}  // namespace keel
