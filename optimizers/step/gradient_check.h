// What apply_gradients refuses before anything changes.
#pragma once

#include <string>
#include <vector>

#include <keel/autodiff/variable.h>

namespace keel {

// ValueError if the lists differ in length, a variable stands there twice, or a gradient has
// another shape than its variable or ids out of range; TypeError if a variable or gradient is not
// floating or their dtypes differ.
void check_gradients(const std::string& caller, const std::vector<Gradient>& gradients,
                     const std::vector<Variable>& variables);

// TypeError.
void check_floating(const std::string& caller, const Variable& variable);

}  // namespace keel
