#include <keel/savedmodel/serving/http/internal/response_head.h>

#include <keel/savedmodel/serving/base/json_text.h>

namespace keel::serving {

void set_error_response(HttpResponse& response, int status, std::string_view text,
                        bool close_after) {
  response.clear();
  response.status = status;
  response.body = json_error(text);
  response.close = close_after;
}

void write_head(const HttpResponse& response, const HeadOptions& options, std::string& head) {
  head.assign("HTTP/1.1 ");
  append_json_number(head, response.status);
  head.push_back(' ');
  head += reason_of(response.status);
  if (response.content_type != nullptr) {
    head += "\r\nContent-Type: ";
    head += response.content_type;
  }
  head += "\r\nContent-Length: ";
  append_json_number(head, static_cast<int64_t>(response.body.size()));
  head += "\r\n";
  head += response.headers;
  if (options.cors) {
    head +=
        "Access-Control-Allow-Origin: *\r\nAccess-Control-Allow-Methods: POST, GET\r\n"
        "Access-Control-Allow-Headers: Content-Type\r\n";
  }
  if (options.close_after) {
    head += "Connection: close\r\n";
  } else if (options.minor_version == 0) {
    head += "Connection: keep-alive\r\n";
  }
  head += "\r\n";
}

}  // namespace keel::serving
