// Counts a request in the metrics of its model and version.
#pragma once

#include <string_view>

#include <keel/savedmodel/serving/models/model_repository.h>
#include <keel/savedmodel/serving/protocol/execution.h>

namespace keel::serving {

// Counts a finished request of any protocol. `model` is the name in the request, which becomes a
// label only if such a model is configured.
void count_request(const RequestTrace& trace, Code code, std::string_view model,
                   const ModelRepository& repository, ServerMetrics& metrics);

}  // namespace keel::serving
