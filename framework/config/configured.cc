#include <keel/framework/config/configured.h>

#include <absl/strings/ascii.h>

namespace keel {

std::string class_name_of(const std::string& name) {
  std::string out;
  bool upper = true;
  for (const char c : name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    out += upper ? absl::ascii_toupper(c) : c;
    upper = false;
  }
  return out;
}

}  // namespace keel
