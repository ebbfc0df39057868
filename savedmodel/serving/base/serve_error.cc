#include <keel/savedmodel/serving/base/serve_error.h>

#include <new>

#include <keel/savedmodel/serving/base/utf8.h>

namespace keel::serving {

std::string_view name_of(Code code) {
  switch (code) {
    case Code::kOk:
      return "OK";
    case Code::kInvalidArgument:
      return "INVALID_ARGUMENT";
    case Code::kDeadlineExceeded:
      return "DEADLINE_EXCEEDED";
    case Code::kNotFound:
      return "NOT_FOUND";
    case Code::kResourceExhausted:
      return "RESOURCE_EXHAUSTED";
    case Code::kFailedPrecondition:
      return "FAILED_PRECONDITION";
    case Code::kUnimplemented:
      return "UNIMPLEMENTED";
    case Code::kInternal:
      return "INTERNAL";
    case Code::kUnavailable:
      return "UNAVAILABLE";
  }
  return "INTERNAL";
}

int http_status_of(Code code) {
  switch (code) {
    case Code::kOk:
      return 200;
    case Code::kInvalidArgument:
    case Code::kFailedPrecondition:
      return 400;
    case Code::kNotFound:
      return 404;
    case Code::kDeadlineExceeded:
      return 504;
    case Code::kResourceExhausted:
      return 429;
    case Code::kUnimplemented:
      return 501;
    case Code::kUnavailable:
      return 503;
    case Code::kInternal:
      return 500;
  }
  return 500;
}

Code code_of_http(int status) {
  switch (status) {
    case 404:
      return Code::kNotFound;
    case 408:
    case 504:
      return Code::kDeadlineExceeded;
    case 429:
      return Code::kResourceExhausted;
    case 501:
      return Code::kUnimplemented;
    case 503:
      return Code::kUnavailable;
    default:
      return status < 500 ? Code::kInvalidArgument : Code::kInternal;
  }
}

ErrorReport current_error() {
  const auto report = [](Code code, const char* what) {
    return ErrorReport{.code = code, .status = http_status_of(code), .message = one_line(what)};
  };
  try {
    throw;
  } catch (const ServeError& error) {
    return {.code = error.code(), .status = error.status(), .message = one_line(error.what())};
  } catch (const ValueFault& error) {
    return report(Code::kInvalidArgument, error.what());
  } catch (const ValueError& error) {
    return report(Code::kInvalidArgument, error.what());
  } catch (const TypeError& error) {
    return report(Code::kInvalidArgument, error.what());
  } catch (const NotImplementedError& error) {
    return report(Code::kUnimplemented, error.what());
  } catch (const std::bad_alloc&) {
    return report(Code::kUnavailable, "out of memory");
  } catch (const std::length_error&) {
    return report(Code::kUnavailable, "out of memory");
  } catch (const std::exception& error) {
    return report(Code::kInternal, error.what());
  } catch (...) {
    return report(Code::kInternal, "unknown error");
  }
}

std::string one_line(std::string_view message, size_t limit) {
  std::string out = valid_utf8(message);
  for (char& c : out) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) c = ' ';
  }
  if (out.size() <= limit) return out;
  size_t size = limit - 3;
  while (size > 0 && (static_cast<unsigned char>(out[size]) & 0xC0) == 0x80) --size;
  out.resize(size);
  return out + "...";
}

}  // namespace keel::serving
