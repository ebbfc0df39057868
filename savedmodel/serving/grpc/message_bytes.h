// Messages as the bytes that gRPC transfers.
#pragma once

#include <cstddef>
#include <google/protobuf/message_lite.h>
#include <grpcpp/support/byte_buffer.h>

namespace keel::serving {

// Parses a request, which may be compressed. Throws ServeError: kInvalidArgument if it is not a
// message of this type, kResourceExhausted if it has more than `most_bytes` bytes.
void parse_message(grpc::ByteBuffer& bytes, size_t most_bytes, google::protobuf::MessageLite& to);

// Serializes a response. Throws ServeError if it is too large for a message.
void serialize_message(const google::protobuf::MessageLite& message, grpc::ByteBuffer& to);

}  // namespace keel::serving
