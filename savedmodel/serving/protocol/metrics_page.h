// The page of metrics in Prometheus's text format.
#pragma once

#include <string>

#include <keel/savedmodel/serving/models/model_repository.h>

namespace keel::serving {

// Returns the metrics of the server and all its models.
std::string metrics_page(const ModelRepository& repository, const ServerMetrics& server,
                         bool ready);

}  // namespace keel::serving
