// Predictions by TensorFlow Serving's messages.
#pragma once

#include <cstdint>

#include <keel/savedmodel/serving/protocol/execution.h>

#include "savedmodel/serving/grpc/tfs_messages.pb.h"

namespace keel::serving {

// Limits and options of a prediction.
struct PredictOptions {
  RequestLimits limits = {};
  int64_t spare_bytes = 64 << 20;  // of values that requests leave out because they repeat
  bool tensor_content = false;     // write outputs so
};

// Answers a predict request on trace.version.
void predict_message(RequestTrace& trace, const rpc::PredictRequest& request,
                     const PredictOptions& options, rpc::PredictResponse& response);

}  // namespace keel::serving
