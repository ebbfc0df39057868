// Parses Keras's data_format option.
#pragma once

#include <string>

#include <keel/framework/base/errors.h>

namespace keel {

// Returns true for "channels_last", [batch, steps, features], and false for "channels_first",
// [batch, features, steps]. Throws ValueError, naming `caller`, for another name.
inline bool is_channels_last(const std::string& data_format, const std::string& caller) {
  if (data_format == "channels_last") return true;
  if (data_format == "channels_first") return false;
  throw ValueError(caller, ": data_format must be channels_last or channels_first, received '",
                   data_format, "'");
}

}  // namespace keel
