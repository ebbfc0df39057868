// Writes outputs as JSON.
#pragma once

#include <cstdint>
#include <string>

#include <keel/savedmodel/serving/models/model_version.h>

namespace keel::serving {

// Appends elements [begin, end) of the values of a view, joined by ", ". Strings of outputs that
// are bytes, and strings that are not UTF-8, are written as {"b64": ...} if `base64`; otherwise
// strings that are not UTF-8 throw ValueFault.
void append_elements(std::string& out, const TensorView& view, int64_t begin, int64_t end,
                     bool is_bytes, bool base64);

// Append an output in the formats of TensorFlow Serving: row `row` of it, or all rows.
void append_row(std::string& out, const RunOutputs::Output& output, int64_t row);
void append_column(std::string& out, const RunOutputs::Output& output);

}  // namespace keel::serving
