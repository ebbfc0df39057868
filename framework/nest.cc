#include <array>

#include <keel/framework/nest_functions.h>

namespace keel {

std::string_view name_of(NestKind kind) {
  constexpr std::array<std::string_view, 4> kNames = {"a leaf", "a list", "a tuple", "a dict"};
  return kNames.at(static_cast<size_t>(kind));
}

namespace nest_internal {

std::string child_path(const std::string& path, const std::string& key) {
  return path.empty() ? key : path + "/" + key;
}

void throw_kind_mismatch(const std::string& path, NestKind expected, NestKind received) {
  throw TypeError("assert_same_structure: the structure at '", path, "' must be ",
                  name_of(expected), ", received ", name_of(received));
}

void throw_structure_mismatch(const std::string& path, const std::string& expected,
                              const std::string& received) {
  throw ValueError("assert_same_structure: the structure at '", path, "' must be ", expected,
                   ", received ", received);
}

}  // namespace nest_internal
}  // namespace keel
