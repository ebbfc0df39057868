#include <keel/layers/utils/saving.h>

#include <absl/strings/match.h>

namespace keel::saving {

CustomObjectScope::CustomObjectScope(const std::vector<CustomObject>& objects) {
  for (const CustomObject& object : objects) entered_.push_back(object.enter());
}

CustomObjectScope::~CustomObjectScope() {
  // The last class is removed first, in case of two of one name.
  while (!entered_.empty()) entered_.pop_back();
}

std::string qualified_name(const std::string& package, const std::string& name,
                           const std::string& class_name) {
  const std::string own = name.empty() ? class_name.substr(class_name.rfind('>') + 1) : name;
  if (package.empty() || absl::StrContains(package, '>') || absl::StrContains(own, '>')) {
    throw ValueError("register_keras_serializable: '", package, "' and '", own,
                     "' must not contain '>', and the package must not be empty");
  }
  return package + ">" + own;
}

}  // namespace keel::saving
