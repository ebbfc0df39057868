#include <keel/layers/internal/refused_arguments.h>

namespace keel {

const std::vector<RefusedArgument>& refused_arguments() {
  static const std::vector<RefusedArgument> kRefused = {
      {"Bidirectional", "weights",
       "initial values are not a part of a layer; call set() on the "
       "entries of Layer::state_entries()"},
  };
  return kRefused;
}

std::string why_refused(const std::string& class_name, const std::string& argument) {
  for (const RefusedArgument& refused : refused_arguments()) {
    if (refused.class_name == class_name && refused.argument == argument) return refused.why;
  }
  return {};
}

}  // namespace keel
