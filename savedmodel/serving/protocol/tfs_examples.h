// The classify and regress APIs of TensorFlow Serving: examples of named features.
#pragma once

#include <string>
#include <string_view>

#include <keel/savedmodel/serving/protocol/execution.h>

namespace keel::serving {

// Answers the body of a classify or regress request (trace.api) on trace.version. Appends the JSON
// answer to `out`.
void tfs_examples(RequestTrace& trace, std::string_view body, const RequestLimits& limits,
                  std::string& out);

}  // namespace keel::serving
