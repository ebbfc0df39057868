// load_version(): makes a ModelVersion of a version folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <keel/savedmodel/serving/base/metrics.h>
#include <keel/savedmodel/serving/base/serve_error.h>
#include <keel/savedmodel/serving/models/repository_options.h>
#include <keel/savedmodel/serving/models/version_unloader.h>

namespace keel::serving {

// A version to load, and the result.
struct VersionLoad {
  std::string model = {}, base_path = {}, folder = {};
  int64_t number = 0;
  std::shared_ptr<ModelMetrics> metrics = {};
  bool try_first = false;  // call RepositoryOptions::try_version before

  VersionHandle version = {};
  bool young = false;  // the failure may be due to files that are still being written
  std::string fingerprint = {};
  Code code = Code::kOk;
  std::string message = {};
  double seconds = 0;
};

// Loads the model of load.folder, warms it up, and sets the result: load.version, whose last handle
// gives it to `unloader`, or else the code and the message of the error.
void load_version(VersionLoad& load, const RepositoryOptions& options,
                  const std::shared_ptr<VersionUnloader>& unloader);

}  // namespace keel::serving
