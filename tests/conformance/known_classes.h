// The classes that files may name, by section of files of golden numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace keel::conformance {

// "layers" -> {"Activation", "Add", ...}, from the registries.
std::map<std::string, std::vector<std::string>> known_classes();

}  // namespace keel::conformance
