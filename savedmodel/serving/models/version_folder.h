// The folders of versions of a model: BASE/N/model.keras.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace keel::serving {

// The folders of a base path by version number. Of two folders with one number, the one without
// leading zeros is taken, and a warning is added. Returns nothing if the base path cannot be
// listed.
std::optional<std::map<int64_t, std::string>> list_versions(const std::string& base_path,
                                                            std::vector<std::string>& warnings);

// Returns the number of a version folder: decimal digits of at most 2^63 - 1.
std::optional<int64_t> version_of(const std::string& name);

// Returns the file of the model in a version folder, relative to it: model.keras, else model.h5,
// else model.hdf5, else the only file with such an ending. Throws IoError, listing the candidates,
// if there is none or more than one.
std::string model_file_in(const std::string& folder);

// Identifies the state of a version folder: names, sizes, times and inodes of its files.
struct FolderState {
  std::string fingerprint = {};
  double youngest_seconds = 0;  // age of the file that was changed last
};
FolderState state_of_folder(const std::string& folder);

}  // namespace keel::serving
