// The parts of HTTP responses that the server itself writes.
#pragma once

#include <string>
#include <string_view>

#include <keel/savedmodel/serving/http/http_message.h>

namespace keel::serving {

// Makes `response` an error with a body of {"error": text}.
void set_error_response(HttpResponse& response, int status, std::string_view text,
                        bool close_after);

// What the status line and the headers of a response depend on besides the response.
struct HeadOptions {
  int minor_version = 1;     // of the request
  bool close_after = false;  // the connection closes after the response
  bool cors = false;         // add the headers that let browsers call from other origins
};

// Replaces `head` by the status line and all headers of a response.
void write_head(const HttpResponse& response, const HeadOptions& options, std::string& head);

}  // namespace keel::serving
