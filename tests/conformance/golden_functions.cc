#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/activations.h>
#include <keel/layers/regularizers.h>

#include "tests/conformance/golden_arrays.h"
#include "tests/conformance/golden_sections.h"

namespace keel::conformance {
namespace {

Array gradient_array(GradientTape& tape, const Tensor& target, const Tensor& x) {
  const Gradient gradient = tape.input_gradient(target, {x})[0];
  return array_of(gradient ? gradient.dense() : ops::zeros_like(x));
}

}  // namespace

void replay_activation(Fields& fields, Comparison& result) {
  const Config* parameters = fields.find("kwargs");
  const Activation activation =
      activations::get(fields.need("name").string(),
                       parameters == nullptr ? Config::dict() : golden_config(*parameters));
  const Tensor x = golden_tensor(fields.need("x")), coef = golden_tensor(fields.need("coef"));
  GradientTape tape;
  tape.watch(x);
  const Tensor y = activation(x);
  result.compare("y", golden_array(fields.need("y")), array_of(y));
  result.compare("gradient of x", golden_array(fields.need("grad_x")),
                 gradient_array(tape, ops::sum(y * coef), x));
}

void replay_regularizer(Fields& fields, Comparison& result) {
  const Config named = class_and_config(fields);
  const Regularizer regularizer(named["class_name"].string(), named["config"]);
  const Tensor w = golden_tensor(fields.need("w"));
  GradientTape tape;
  tape.watch(w);
  const Tensor value = (*regularizer)(w);
  result.compare("value", golden_array(fields.need("value")), array_of(value));
  result.compare("gradient of w", golden_array(fields.need("grad")),
                 gradient_array(tape, value, w));
}

void replay_constraint(Fields& fields, Comparison& result) {
  const Config named = class_and_config(fields);
  const Constraint constraint(named["class_name"].string(), named["config"]);
  result.compare("result", golden_array(fields.need("result")),
                 array_of((*constraint)(golden_tensor(fields.need("w")))));
}

}  // namespace keel::conformance
