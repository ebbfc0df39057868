// The predict API of TensorFlow Serving: rows under "instances", columns under "inputs".
#pragma once

#include <string>
#include <string_view>

#include <keel/savedmodel/serving/protocol/execution.h>

namespace keel::serving {

// Answers the body of a predict request on trace.version. Appends the JSON answer to `out`.
void tfs_predict(RequestTrace& trace, std::string_view body, const RequestLimits& limits,
                 std::string& out);

}  // namespace keel::serving
