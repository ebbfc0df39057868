// ServeError: an error that is reported to a client, with its code and HTTP status.
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>

#include <keel/framework/base/errors.h>

namespace keel::serving {

// The canonical codes of gRPC, of which the server uses these.
enum class Code {
  kOk = 0,
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFound = 5,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
  kUnimplemented = 12,
  kInternal = 13,
  kUnavailable = 14,
};

// Returns the name of a code: "INVALID_ARGUMENT".
std::string_view name_of(Code code);
// Returns the HTTP status of a code: 400.
int http_status_of(Code code);
// Returns the code of an HTTP status of the server itself: kInvalidArgument for errors of the
// client that no other code describes.
Code code_of_http(int status);

// An error that ends a request. Constructed from the parts of its message, which str() joins.
class ServeError : public std::runtime_error {
 public:
  template <class... Args>
  explicit ServeError(Code code, const Args&... args)
      : std::runtime_error(str(args...)), code_(code), status_(http_status_of(code)) {}

  // Makes an error with another HTTP status than that of the code.
  template <class... Args>
  static ServeError with_status(int status, Code code, const Args&... args) {
    ServeError out(code, args...);
    out.status_ = status;
    return out;
  }

  Code code() const { return code_; }
  int status() const { return status_; }

 private:
  Code code_;
  int status_;
};

// A value of a request that is wrong. Readers of values throw it without the name of the input,
// which their callers add.
class ValueFault : public std::runtime_error {
 public:
  template <class... Args>
  explicit ValueFault(const Args&... args) : std::runtime_error(str(args...)) {}
};

// An error as clients see it.
struct ErrorReport {
  Code code = Code::kInternal;
  int status = 500;
  std::string message = {};
};

// Describes the exception that is being handled. Call it in a catch block.
ErrorReport current_error();

// Returns `message` as one line of valid UTF-8 of at most `limit` bytes; longer text ends in "...".
std::string one_line(std::string_view message, size_t limit = 1024);

}  // namespace keel::serving
