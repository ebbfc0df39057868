// What the repository knows of a model and of each of its versions.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <keel/savedmodel/serving/models/model_repository.h>

namespace keel::serving {

// A version that has been seen.
struct VersionRecord {
  VersionStatus status = {};
  std::string folder = {};
  bool listed = true;
  VersionHandle version = {};    // while it is available
  std::string fingerprint = {};  // of the folder, when it was loaded or failed
  int failures = 0;              // that count as tries
  bool waiting = false;          // for the next try
  std::chrono::steady_clock::time_point next_try = {};
  std::chrono::steady_clock::time_point since = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point seen = std::chrono::steady_clock::now();
  double load_seconds = 0, swap_seconds = 0;
  uint64_t ended = 0;  // order of ending
  bool warned = false;
  bool wanted = false;  // by the policy, at some time
};

// A model of the configuration.
struct ModelRecord {
  ModelConfig config;
  std::shared_ptr<ModelMetrics> metrics = std::make_shared<ModelMetrics>();
  std::map<int64_t, VersionRecord> records;
  // Versions of the base path before, which answer until the present one has an available version.
  std::map<int64_t, VersionHandle> previous;
  std::set<int64_t> missing;  // versions of the policy without a folder, as reported
  bool removed = false;       // not in the configuration any more
  bool unlisted = false;      // the last scan could not list the base path
};

// What the folder of a model holds.
struct FolderScan {
  std::string model = {};
  ModelConfig config = {};
  std::map<int64_t, std::string> fingerprints = {};  // of the versions that are watched
  std::optional<std::map<int64_t, std::string>> folders = {};
  std::vector<std::string> warnings = {};

  // Lists the folder, which may take long.
  void read();
};

// True if a change of the version's files is of interest: a version that has failed or waits for
// its next try is tried anew, and the log warns once of an available one.
bool watches_files(const VersionRecord& record);
// Updates which versions have folders, and forgets failures of files that have changed.
void apply_scan(const FolderScan& scan, ModelRecord& model);
// Forgets the versions of a base path. Those that are available answer until the next base path has
// one, so that no request fails.
void leave_base_path(ModelRecord& model);
// Forgets versions that have ended and whose folders are gone, but for the last ones.
void forget_old(ModelRecord& model);
// The versions that status and metrics list, newest first: those that the policy has wanted, and of
// those that have ended the last ones.
std::vector<const VersionRecord*> listed_records(const ModelRecord& model);
ModelStatus status_of(const ModelRecord& model);

}  // namespace keel::serving
