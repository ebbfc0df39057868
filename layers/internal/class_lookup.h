// Looks up loss and metric classes by the names that Keras accepts.
#pragma once

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace keel {

// An alias and the name of the class that it stands for.
using ClassAlias = std::pair<const char*, const char*>;

// Returns the element of `classes` that `name` stands for: an alias such as "mse", which losses and
// metrics share, one of `more_aliases`, a class name, or a class name in snake case. Returns an
// empty string if there is none.
std::string find_class(const std::vector<std::string>& classes,
                       std::span<const ClassAlias> more_aliases, const std::string& name);

}  // namespace keel
