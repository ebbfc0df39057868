// Checks of options that several image layers have.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>

#include <keel/framework/base/errors.h>

namespace keel {

// Throws ValueError, naming `caller`, unless both sizes are positive.
inline void check_size(int64_t height, int64_t width, const std::string& caller) {
  if (height > 0 && width > 0) return;
  throw ValueError(caller, ": height and width must be positive, received ", height, " and ",
                   width);
}

// Throws ValueError, naming `caller` and `option`, unless `value` is one of `names`.
inline void check_name(const std::string& value, std::initializer_list<std::string_view> names,
                       const std::string& option, const std::string& caller) {
  if (std::ranges::find(names, value) != names.end()) return;
  std::string list;
  for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
  throw ValueError(caller, ": ", option, " must be one of ", list, ", received '", value, "'");
}

}  // namespace keel
