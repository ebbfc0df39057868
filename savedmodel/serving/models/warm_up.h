// Runs a version before it becomes available.
#pragma once

#include <functional>
#include <string>

#include <keel/savedmodel/serving/models/model_version.h>

namespace keel::serving {

// Runs each signature on one synthetic row, so that workspaces exist; errors of it are ignored,
// because no value is known to suit the model. Then passes the lines of
// FOLDER/assets.extra/keel_warmup_requests.jsonl, at most 1000, to `run`, and throws ValueError
// that names the line if one fails. FOLDER/assets.extra/tf_serving_warmup_requests is passed to
// `replay`, if there are both.
void warm_up(const ModelVersion& version, const std::string& folder,
             const std::function<void(const ModelVersion&, const std::string&)>& run,
             const std::function<void(const ModelVersion&, const std::string&)>& replay = {});

}  // namespace keel::serving
