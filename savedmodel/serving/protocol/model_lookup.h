// Finds the versions that requests name, for all protocols.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <keel/savedmodel/serving/models/model_repository.h>

namespace keel::serving {

// How a request names a version: by number, by label, or by neither, which means the latest one.
struct ModelTarget {
  std::string name = {};
  std::optional<int64_t> version = {};
  std::optional<std::string> label = {};
};

// Returns the number that a text of decimal digits means, or nothing if it is none.
std::optional<int64_t> version_number(std::string_view text);

// Returns an available version. Throws ServeError: kNotFound, and `unknown_label` for a label that
// the model does not have.
VersionHandle find_version(const ModelRepository& repository, const ModelTarget& target,
                           Code unknown_label);

// Returns the states of the versions that a target means, newest first; those of all versions if it
// names none. Throws ServeError if there are none.
std::vector<VersionStatus> find_statuses(const ModelRepository& repository,
                                         const ModelTarget& target);

// Returns whether a version is available. Throws ServeError kNotFound if it does not exist.
bool is_available(const ModelRepository& repository, const ModelTarget& target);

}  // namespace keel::serving
