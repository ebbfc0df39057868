// Helpers shared by the sources that read and write files.
#pragma once

#include <cerrno>
#include <filesystem>
#include <string>
#include <system_error>

namespace keel::internal {

// Returns the message of errno.
inline std::string system_message() { return std::generic_category().message(errno); }

// Returns the folder that contains `path`, "." if the path names none.
inline std::string folder_of(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

}  // namespace keel::internal
