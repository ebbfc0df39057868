// Regularizers: penalties on weights or activations that training adds to the loss
// (keras.regularizers). Constraints: functions that optimizers apply to a weight after each step
// (keras.constraints). Both have Keras's names and values.
#pragma once

#include <string>

#include <keel/framework/config/configured.h>
#include <keel/framework/tensor.h>
#include <keel/layers/axes.h>

namespace keel {

// A function of a floating-point tensor that returns a scalar and consists of differentiable ops.
class RegularizerFunction {
 public:
  virtual ~RegularizerFunction() = default;
  // Returns the penalty, a scalar.
  virtual Tensor operator()(const Tensor& x) const = 0;
  virtual std::string class_name() const = 0;  // name in files
  virtual Config get_config() const = 0;       // parameters under Keras's names

  // Returns the registry of the classes that files may name: L1, L2, L1L2, OrthogonalRegularizer,
  // and the classes that you add.
  static Registry<RegularizerFunction>& registry();
};

// The value of a regularizer option: none, a name ("l2", with the default factors), or the result
// of a function below.
using Regularizer = Configured<RegularizerFunction>;

namespace regularizers {

// Each function throws ValueError if a factor is not finite.
Regularizer l1(double factor = 0.01);  // factor * sum |x|
Regularizer l2(double factor = 0.01);  // factor * sum x^2
// Returns l1 * sum |x| + l2 * sum x^2.
Regularizer l1_l2(double l1 = 0.0, double l2 = 0.0);
// Encourages the rows (mode "rows") or columns (mode "columns") of a matrix to be orthogonal. The
// loss is `factor` times the mean of |cosine| over all pairs. Throws ValueError for another mode,
// and, when it is called, for a tensor whose rank is not 2.
Regularizer orthogonal(double factor = 0.01, const std::string& mode = "rows");

}  // namespace regularizers

// A function of a floating-point tensor whose result has the same shape and dtype. It runs over the
// whole weight at each step, embedding tables included, so its cost is proportional to the weight's
// size.
class ConstraintFunction {
 public:
  virtual ~ConstraintFunction() = default;
  // Returns the constrained weight.
  virtual Tensor operator()(const Tensor& w) const = 0;
  virtual std::string class_name() const = 0;  // name in files
  virtual Config get_config() const = 0;       // parameters under Keras's names

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
