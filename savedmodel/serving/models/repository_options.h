// RepositoryOptions: how a server finds, loads and keeps the versions of its models.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include <keel/savedmodel/serving/models/model_version.h>

namespace keel::serving {

// Options of ModelRepository.
struct RepositoryOptions {
  double poll_seconds = 1;  // between scans of the folders; 0: scan once
  int max_retries = 5;
  int64_t retry_micros = 60000000;
  int load_threads = 1;
  bool allow_labels_of_unavailable = false;
  bool warm_up = true;
  // Where tables are: "mapped" from the file; "resident" in memory; or "auto": mapped until a
  // background thread has moved them to memory.
  std::string tables = "auto";
  std::shared_ptr<BatchScheduler> batching = {};  // joins the requests of all models; null: none
  // Loads the version of a folder where a crash does no harm; throws if that crashes. Called before
  // a version is loaded while others are available. Null: no trials.
  std::function<void(const std::string& folder)> try_version = {};
  // Runs a line of a warm-up file on a version; throws if it fails.
  std::function<void(const ModelVersion&, const std::string&)> run_warm_up = {};
  // Runs a file of TensorFlow Serving's warm-up records, in builds that can read it.
  std::function<void(const ModelVersion&, const std::string&)> replay_warm_up = {};
};

}  // namespace keel::serving
