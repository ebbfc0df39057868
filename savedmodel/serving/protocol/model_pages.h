// JSON descriptions of models: states and metadata in the formats of both protocols.
#pragma once

#include <string>
#include <vector>

#include <keel/savedmodel/serving/models/model_repository.h>

namespace keel::serving {

// {"model_version_status": [...]} of TensorFlow Serving.
std::string tfs_status_json(const std::vector<VersionStatus>& versions);
// {"models": [{"name": ..., "model_version_status": [...]}]}
std::string tfs_models_json(const std::vector<ModelStatus>& models);
// The metadata of a version in the format of TensorFlow Serving.
std::string tfs_metadata_json(const ModelVersion& version);

// The metadata of a version in KServe v2; `versions` are those that are available.
std::string kserve_metadata_json(const ModelVersion& version, const std::vector<int64_t>& versions);
// {"name": "keel", ...}
std::string kserve_server_json();
// [{"name", "version", "state", "reason"}]; `only_ready` leaves all but READY out.
std::string kserve_index_json(const std::vector<ModelStatus>& models, bool only_ready);
// Returns the state of a version in KServe v2: "READY", "LOADING", "UNLOADING" or "UNAVAILABLE".
const char* kserve_state(VersionState state);
// Returns why a version is in its state; empty if nothing is to be said.
std::string kserve_reason(const VersionStatus& version);
// {"model_stats": [...]} of Triton's statistics extension.
std::string kserve_stats_json(const std::vector<VersionHandle>& versions);

}  // namespace keel::serving
