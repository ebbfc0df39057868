// Initializers given by their configs.
#pragma once

#include <string>

#include <keel/framework/initializers.h>

namespace keel::testing_support {

// Returns the initializer that a JSON config describes.
inline Initializer initializer_from_json(const std::string& json) {
  Initializer out("zeros");
  decode(parse_json(json), out);
  return out;
}

}  // namespace keel::testing_support
