// Where the steps of sequences stand (Keras's data_format).
#pragma once

#include <string>

#include <keel/framework/base/errors.h>

namespace keel {

// True for "channels_last", [batch, steps, features]; false for "channels_first",
// [batch, features, steps]. ValueError, naming `caller`, for another name.
inline bool is_channels_last(const std::string& data_format, const std::string& caller) {
  if (data_format == "channels_last") return true;
  if (data_format == "channels_first") return false;
  throw ValueError(caller, ": data_format is channels_last or channels_first, received '",
                   data_format, "'");
}

}  // namespace keel
