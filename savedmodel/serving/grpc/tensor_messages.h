// Tensors as messages of TensorFlow.
#pragma once

#include <cstdint>

#include <keel/savedmodel/serving/models/model_version.h>
#include <keel/savedmodel/serving/protocol/tensor_collector.h>

#include "savedmodel/serving/grpc/tfs_messages.pb.h"

namespace keel::serving {

// Returns the number of a dtype in TensorFlow.
rpc::DataType tensorflow_type(DType dtype);

// Adds a tensor that the collector has found. A list of too few values is filled up with the last
// one, or with zeros, and its bytes are subtracted from `spare_bytes`, which must not become
// negative. The message must outlive the request.
void read_tensor(const rpc::TensorProto& message, RequestTensor& tensor, TensorCollector& to,
                 int64_t& spare_bytes);

// Writes a dense tensor; `content`: as the bytes of tensor_content in place of typed values.
void write_tensor(const TensorView& view, bool content, rpc::TensorProto& to);

// Describes an input or output of a signature.
void write_tensor_info(const TensorInfo& info, rpc::TensorInfo& to);

}  // namespace keel::serving
