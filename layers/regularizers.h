// Regularizers: penalties on weights or activations that training adds to the loss, by Keras's
// names and numbers (keras.regularizers).
#pragma once

#include <string>

#include <keel/framework/config/configured.h>
#include <keel/framework/tensor.h>

namespace keel {

// A scalar function of a floating tensor, made of differentiable ops.
class RegularizerFunction {
 public:
  virtual ~RegularizerFunction() = default;
  virtual Tensor operator()(const Tensor& x) const = 0;
  virtual std::string class_name() const = 0;
  virtual Config get_config() const = 0;

  // Classes that files may name: L1, L2, L1L2, OrthogonalRegularizer, and those you add.
  static Registry<RegularizerFunction>& registry();
};

// What options hold: nothing, a name ("l2", with the default factors), or one made below.
using Regularizer = Configured<RegularizerFunction>;

namespace regularizers {

Regularizer l1(double factor = 0.01);  // factor * sum |x|
Regularizer l2(double factor = 0.01);  // factor * sum x^2
Regularizer l1_l2(double l1 = 0.0, double l2 = 0.0);
// Pushes the rows (mode "rows") or columns ("columns") of a matrix to be orthogonal: factor times
// the mean of |cosine| over their pairs. ValueError for another mode, and when called on another
// rank.
Regularizer orthogonal(double factor = 0.01, const std::string& mode = "rows");

}  // namespace regularizers
}  // namespace keel
