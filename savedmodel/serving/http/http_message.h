// Requests and responses of HTTP.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include <keel/savedmodel/serving/base/request_deadline.h>

namespace keel::serving {

// The methods that the server distinguishes.
enum class HttpMethod { kGet, kHead, kPost, kOptions, kOther };

// A request. Its views are valid while the request is handled.
struct HttpRequest {
  HttpMethod method = HttpMethod::kGet;
  std::string_view method_text = {};
  std::string_view path = {};  // as sent, without the query
  int minor_version = 1;       // of HTTP/1.x
  bool keep_alive = true;
  std::string_view content_encoding = {};
  std::string_view origin = {};
  std::string_view accept = {};
  bool has_header_length = false;  // Inference-Header-Content-Length
  std::string_view header_length = {};
  std::string_view body = {};
  int64_t read_ns = 0;  // when the last byte arrived, of the steady clock
  // What HttpHandler::pin() returned when the request began; null if the request was read at once.
  std::shared_ptr<const void> pinned = {};
  // Of a request that computes: decides which thread sends the response. Null: the handler's.
  RequestDeadline* deadline = nullptr;
};

// A response. The server adds the status line, Content-Length, Connection and the CORS headers.
struct HttpResponse {
  int status = 200;
  const char* content_type = "application/json";  // null: no header
  std::string headers = {};                       // more header lines, each ending in CRLF
  std::string body = {};
  bool close = false;  // close the connection after this response

  void clear() {
    status = 200;
    content_type = "application/json";
    headers.clear();
    body.clear();
    close = false;
  }
};

// Returns the reason phrase of a status, such as "Not Found".
const char* reason_of(int status);

// Decodes the percent sequences of a part of a path. Returns false if one is malformed.
bool percent_decode(std::string_view text, std::string& out);

}  // namespace keel::serving
