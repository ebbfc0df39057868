// The arguments of Keras's layers that Keel refuses, with reasons.
#pragma once

#include <string>
#include <vector>

namespace keel {

// An argument whose values other than the default are refused.
struct RefusedArgument {
  std::string class_name;  // the layer, as in files
  std::string argument;    // the name of the argument in Keras
  std::string why;         // the reason and the remedy, shown in errors and in the documentation
};

// Returns all of them, in the order of the classes. The keys must be in ClassTraits::ignored_keys
// of their class.
const std::vector<RefusedArgument>& refused_arguments();

// Returns the reason for an argument, or an empty string.
std::string why_refused(const std::string& class_name, const std::string& argument);

}  // namespace keel
