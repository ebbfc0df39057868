// Checks that apply_gradients makes before anything changes.
#pragma once

#include <string>
#include <vector>

#include <keel/autodiff/variable.h>

namespace keel {

// Throws ValueError if the lists differ in length, a variable is listed twice, or a gradient has
// another shape than its variable or ids out of range. Throws TypeError if a variable or gradient
// is not floating point, their dtypes differ, or ids are not int64.
void check_gradients(const std::string& caller, const std::vector<Gradient>& gradients,
                     const std::vector<Variable>& variables);

// Throws TypeError unless the variable is float32 or float64.
void check_floating(const std::string& caller, const Variable& variable);

}  // namespace keel
