// The registered classes, by section of files of golden numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace keel::conformance {

// Returns "layers" -> {"Activation", "Add", ...}, from the registries.
std::map<std::string, std::vector<std::string>> known_classes();

}  // namespace keel::conformance
