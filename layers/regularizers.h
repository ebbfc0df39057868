// Regularizers: penalties on weights or activations that training adds to the loss, with Keras's
// names and values (keras.regularizers).
#pragma once

#include <string>

#include <keel/framework/config/configured.h>
#include <keel/framework/tensor.h>

namespace keel {

// A function of a floating-point tensor that returns a scalar and consists of differentiable ops.
class RegularizerFunction {
 public:
  virtual ~RegularizerFunction() = default;
  virtual Tensor operator()(const Tensor& x) const = 0;
  virtual std::string class_name() const = 0;
  virtual Config get_config() const = 0;

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
}  // namespace keel
