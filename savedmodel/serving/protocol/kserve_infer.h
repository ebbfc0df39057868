// The inference API of KServe v2, with the extension for binary tensors.
#pragma once

#include <string>
#include <string_view>

#include <keel/savedmodel/serving/protocol/execution.h>

namespace keel::serving {

// Answers the body of an infer request on trace.version. `json_size` is the number of bytes before
// binary tensors, or npos without them. Appends the answer to `out` and returns the size of its
// JSON, or npos if no output is binary.
size_t kserve_infer(RequestTrace& trace, std::string_view body, size_t json_size,
                    const RequestLimits& limits, std::string& out);

}  // namespace keel::serving
