// What the sources that read and write files share.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace keel::internal {

// The text of errno.
inline std::string system_message() { return std::generic_category().message(errno); }

// The folder that holds `path`: "." for a name without one.
inline std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace keel::internal
