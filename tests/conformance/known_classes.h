// The classes that files may name, by section of files of golden numbers.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace keel::conformance {

// "layers" -> {"Activation", "Add", ...}, from the registries.
std::map<std::string, std::vector<std::string>> known_classes();

// Where a class is tested that no record of Keras's numbers can be about.
struct CoveredElsewhere {
  std::string section, class_name;
  std::string reason;
  std::string test;  // a file below tests/
};
const std::vector<CoveredElsewhere>& covered_elsewhere();

}  // namespace keel::conformance
