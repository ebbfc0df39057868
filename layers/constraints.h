// Constraints: functions that optimizers apply to a weight after each step, with Keras's names and
// values (keras.constraints).
#pragma once

#include <string>

#include <keel/framework/config/configured.h>
#include <keel/layers/axes.h>

namespace keel {

// A function of a floating-point tensor whose result has the same shape and dtype. It runs over the
// whole weight at each step, embedding tables included, so its cost is proportional to the weight's
// size.
class ConstraintFunction {
 public:
  virtual ~ConstraintFunction() = default;
  virtual Tensor operator()(const Tensor& w) const = 0;
  virtual std::string class_name() const = 0;
  virtual Config get_config() const = 0;

  // Returns the registry of the classes that files may name: MaxNorm, MinMaxNorm, NonNeg, UnitNorm,
  // and the classes that you add.
  static Registry<ConstraintFunction>& registry();
};

// The value of a `constraint` option: none, a name ("non_neg", with default parameters), or the
// result of a function below.
using Constraint = Configured<ConstraintFunction>;

namespace constraints {

// In all of these functions, a norm is the square root of the sum of squares over `axis`. Axis 0
// gives the norms of the columns of a Dense kernel: each column holds the weights of one unit.

// Scales weights whose norm exceeds max_value to the norm max_value.
Constraint max_norm(double max_value = 2.0, const Axes& axis = 0);
// Moves each norm by the fraction `rate` of its distance to the interval [min_value, max_value].
Constraint min_max_norm(double min_value = 0.0, double max_value = 1.0, double rate = 1.0,
                        const Axes& axis = 0);
Constraint non_neg();                        // max(w, 0)
Constraint unit_norm(const Axes& axis = 0);  // scales all norms to 1

}  // namespace constraints
}  // namespace keel
