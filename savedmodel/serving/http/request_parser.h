// RequestParser: finds HTTP/1.x requests in the bytes of a connection (RFC 9112).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <keel/savedmodel/serving/http/http_message.h>

namespace keel::serving {

// Limits of requests.
struct HttpLimits {
  size_t header_bytes = 65536;  // request line and headers
  int headers = 128;
  size_t body_bytes = 64 << 20;
};

// Parses one request after another. The bytes of a request are passed again, with more of them,
// until it is complete; the parser remembers how far it has looked.
class RequestParser {
 public:
  enum class State {
    kHeaders,   // the headers are not complete
    kBody,      // the headers are complete, the body is not
    kComplete,  // request() is the request, and consumed() its size
    kFailed,    // error_status() and error_text() say why; the connection must be closed
  };

  explicit RequestParser(const HttpLimits& limits) : limits_(limits) {}

  // Parses `bytes`, which start with the current request.
  State parse(std::string_view bytes);
  // Begins the next request.
  void reset();

  State state() const { return state_; }
  // The number of bytes that the complete request has.
  size_t consumed() const { return consumed_; }
  // The complete request, as views of `bytes`, which must be those of the last call of parse() or
  // a copy of them.
  HttpRequest request(std::string_view bytes) const;
  // True if the request line was read, so that request() has method and path.
  bool has_request_line() const { return path_.size > 0; }
  // Removes chunks that were read from `bytes`, the bytes of the last call of parse(), to which the
  // connection appends.
  void drop_read_chunks(std::string& bytes);
  // The number of bytes of chunks that the parser itself holds.
  size_t held_bytes() const { return body_.size(); }
  // True once if the client waits for "100 Continue" before it sends the body.
  bool take_expectation();

  int error_status() const { return error_status_; }
  const char* error_text() const { return error_text_; }

 private:
  struct Span {
    size_t begin = 0;
    size_t size = 0;
    std::string_view in(std::string_view bytes) const { return bytes.substr(begin, size); }
  };

  State fail(int status, const char* text);
  bool parse_head(std::string_view bytes);
  bool parse_request_line(std::string_view bytes, size_t begin, size_t end);
  bool parse_header(std::string_view bytes, size_t begin, size_t end);
  bool check_framing();
  State parse_chunks(std::string_view bytes);
  bool parse_chunk_size(std::string_view line);

  HttpLimits limits_;
  State state_ = State::kHeaders;
  size_t start_ = 0;    // of the request line, after empty lines
  size_t scanned_ = 0;  // bytes in which no end of the headers was found
  size_t head_end_ = 0;
  HttpMethod method_ = HttpMethod::kGet;
  Span method_text_, path_, encoding_, origin_, accept_, header_length_;
  int minor_version_ = 1;
  int hosts_ = 0;
  bool close_ = false, keep_alive_ = false;
  bool has_length_ = false, has_transfer_encoding_ = false, chunked_ = false;
  bool has_header_length_ = false, expects_ = false;
  uint64_t length_ = 0;
  // Chunks are joined in body_.
  enum class ChunkState { kSize, kData, kDataEnd, kTrailer };
  ChunkState chunk_state_ = ChunkState::kSize;
  size_t chunk_at_ = 0;
  uint64_t chunk_left_ = 0;
  size_t trailer_bytes_ = 0;
  std::string body_;
  size_t consumed_ = 0;
  int error_status_ = 0;
  const char* error_text_ = "";
};

}  // namespace keel::serving
