// ModelRepository: loads the versions of the configured models, and finds them for requests.
//
// One thread scans the folders and decides; threads of low priority load. Requests read a snapshot
// of what is available, which is replaced as a whole, and keep the version that they found alive
// until they end. Versions that are no longer used are freed by a thread of their own.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <keel/savedmodel/serving/base/metrics.h>
#include <keel/savedmodel/serving/base/serve_error.h>
#include <keel/savedmodel/serving/models/model_version.h>
#include <keel/savedmodel/serving/models/repository_options.h>
#include <keel/savedmodel/serving/models/server_config.h>

namespace keel::serving {

// The states of a version, with the numbers of TensorFlow Serving.
enum class VersionState {
  kStart = 10,
  kLoading = 20,
  kAvailable = 30,
  kUnloading = 40,
  kEnd = 50,
};
// Returns "AVAILABLE", ...
const char* name_of(VersionState state);

// The state of a version, and the error if it has failed.
struct VersionStatus {
  int64_t number = 0;
  VersionState state = VersionState::kStart;
  Code code = Code::kOk;
  std::string message = {};
};

// The state of a model.
struct ModelStatus {
  std::string name = {};
  std::vector<VersionStatus> versions = {};  // newest first
};

// A model in a snapshot.
struct ServedModel {
  std::string name = {};
  std::map<int64_t, VersionHandle> versions = {};  // those that are available
  std::map<std::string, int64_t, std::less<>> labels = {};
  std::shared_ptr<ModelMetrics> metrics = {};

  // Return a version, or null if it is not available; `latest` is the largest one.
  VersionHandle latest() const;
  VersionHandle version(int64_t number) const;
  VersionHandle labelled(std::string_view label) const;
};

// What is available at one time.
struct Catalog {
  std::map<std::string, ServedModel, std::less<>> models = {};
  bool ready = false;  // each model has an available version

  const ServedModel* find(std::string_view name) const;
};

// Figures of a version for the metrics page.
struct VersionFigures {
  VersionHandle version = {};  // null unless available
  VersionStatus status = {};
  double load_seconds = 0;
  double swap_seconds = 0;  // from seeing the version to serving it in place of another one
};

// All models of a server. Thread safe.
class ModelRepository {
 public:
  ModelRepository(const RepositoryOptions& options, ServerMetrics& metrics);
  // Waits for loads that have begun.
  ~ModelRepository();
  ModelRepository(const ModelRepository&) = delete;
  ModelRepository& operator=(const ModelRepository&) = delete;

  // Serves these models from now on: loads new ones and unloads those that are missing. After the
  // first call, labels of versions that are not available are refused: the model keeps its old
  // labels and the errors are returned.
  std::vector<std::string> configure(const std::vector<ModelConfig>& configs);

  // The current snapshot, never null.
  std::shared_ptr<const Catalog> catalog() const;

  // The states of a model, or nothing if it is unknown; and those of all models by name.
  std::optional<ModelStatus> status(std::string_view model) const;
  std::vector<ModelStatus> statuses() const;
  // The figures of all versions of all models.
  std::map<std::string, std::vector<VersionFigures>> figures() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace keel::serving
