#include <keel/savedmodel/serving/grpc/message_bytes.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>
#include <string>
#include <string_view>

#include <keel/savedmodel/serving/base/inflate.h>
#include <keel/savedmodel/serving/base/serve_error.h>

namespace keel::serving {
namespace {

// Decompresses a message in place. gRPC itself would do so without a limit, and check the size
// afterwards; the server has switched that off.
void decompress_message(grpc::ByteBuffer& bytes, size_t most_bytes) {
  // The class has no function for its only member, and asserts that it has no other one.
  grpc_byte_buffer* raw = nullptr;
  static_assert(sizeof raw == sizeof bytes);
  std::memcpy(&raw, &bytes, sizeof raw);
  if (raw == nullptr || raw->data.raw.compression == GRPC_COMPRESS_NONE) return;
  grpc::Slice packed;
  if (!bytes.DumpToSingleSlice(&packed).ok()) return;
  const std::string_view text(reinterpret_cast<const char*>(packed.begin()), packed.size());
  const bool gzip = raw->data.raw.compression == GRPC_COMPRESS_GZIP;
  try {
    const grpc::Slice whole(inflate_body(text, gzip, most_bytes));
    bytes = grpc::ByteBuffer(&whole, 1);
  } catch (const ServeError& error) {
    constexpr int kTooLarge = 413;
    if (error.status() != kTooLarge) throw;
    throw ServeError(Code::kResourceExhausted, error.what());
  }
}

}  // namespace

void parse_message(grpc::ByteBuffer& bytes, size_t most_bytes, google::protobuf::MessageLite& to) {
  decompress_message(bytes, most_bytes);
  grpc::ProtoBufferReader reader(&bytes);
  if (!reader.status().ok() || !to.ParseFromZeroCopyStream(&reader)) {
    throw ServeError(Code::kInvalidArgument, "the request is not a message of this method");
  }
}

void serialize_message(const google::protobuf::MessageLite& message, grpc::ByteBuffer& to) {
  constexpr size_t kMostBytes = INT32_MAX;
  constexpr int kBlock = 1 << 20;
  const size_t size = message.ByteSizeLong();
  if (size <= kMostBytes) {
    const int total = static_cast<int>(size);
    grpc::ProtoBufferWriter writer(&to, std::min(std::max(total, 1), kBlock), total);
    if (message.SerializeToZeroCopyStream(&writer)) return;
  }
  throw ServeError(Code::kInvalidArgument, "the outputs are too large for a message");
}

}  // namespace keel::serving
