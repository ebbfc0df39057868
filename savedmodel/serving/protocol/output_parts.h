// The tensors that the outputs of a run consist of, in answers of KServe v2 and gRPC.
#pragma once

#include <string>
#include <string_view>

#include <keel/savedmodel/serving/models/model_version.h>

namespace keel::serving {

// Views a part of an output as a dense tensor, which is valid as long as `view` and its memory.
TensorView view_of_part(const TensorView& view, const PartInfo& part);

// Appends the values as bytes: numbers little-endian, each string after its length as 4 bytes.
void append_binary(std::string& out, const TensorView& view);

}  // namespace keel::serving
