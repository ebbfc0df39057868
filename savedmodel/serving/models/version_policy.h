// Decides which versions of a model should be loaded and unloaded.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include <keel/savedmodel/serving/models/server_config.h>

namespace keel::serving {

// What the policy needs to know about a version that has been seen.
struct VersionFacts {
  bool listed = false;     // its folder exists
  bool failed = false;     // it cannot be loaded
  bool waiting = false;    // a load has failed and will be tried again
  bool available = false;  // it answers requests
};

// Returns the versions that should be available. Under `latest`, versions that have failed do not
// count; while no version is available, the next smaller one than a waiting one is added.
std::set<int64_t> aspired_versions(const VersionPolicy& policy,
                                   const std::map<int64_t, VersionFacts>& versions);

// Returns the available versions that should be unloaded: those that are not aspired, once an
// aspired one is available. The largest of the others stays until then.
std::set<int64_t> superseded_versions(const std::set<int64_t>& aspired,
                                      const std::map<int64_t, VersionFacts>& versions);

}  // namespace keel::serving
