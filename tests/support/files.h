// Reads, writes and lists files.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace keel::testing_support {

// Returns the contents of a file; an empty string if the file cannot be read.
std::string read_bytes(const std::filesystem::path& path);

// Replaces the contents of a file.
void write_bytes(const std::filesystem::path& path, const std::string& bytes);

// Returns the names of the files and folders directly in a folder, sorted.
std::vector<std::string> names_in(const std::filesystem::path& folder);

}  // namespace keel::testing_support
