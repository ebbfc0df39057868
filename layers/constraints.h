// Constraints: what optimizers make of a weight after each step, by Keras's names and numbers
// (keras.constraints).
#pragma once

#include <string>

#include <keel/framework/config/configured.h>
#include <keel/layers/axes.h>

namespace keel {

// A function of a floating tensor; the result has its shape and dtype. It costs time in
// proportion to the whole weight at each step, tables included.
class ConstraintFunction {
 public:
  virtual ~ConstraintFunction() = default;
  virtual Tensor operator()(const Tensor& w) const = 0;
  virtual std::string class_name() const = 0;
  virtual Config get_config() const = 0;

  // Classes that files may name: MaxNorm, MinMaxNorm, NonNeg, UnitNorm, and those you add.
  static Registry<ConstraintFunction>& registry();
};

// What options hold: nothing, a name ("non_neg", with default parameters), or one made below.
using Constraint = Configured<ConstraintFunction>;

namespace constraints {

// In all of them a norm is the square root of the sum of squares over `axis`: 0 for the columns
// of a Dense kernel, that is, the weights that reach one unit.

// Norms above max_value become max_value.
Constraint max_norm(double max_value = 2.0, const Axes& axis = 0);
// Norms move by `rate` of the way into [min_value, max_value].
Constraint min_max_norm(double min_value = 0.0, double max_value = 1.0, double rate = 1.0,
                        const Axes& axis = 0);
Constraint non_neg();                        // max(w, 0)
Constraint unit_norm(const Axes& axis = 0);  // norms become 1

}  // namespace constraints
}  // namespace keel
