// The exceptions that this library throws.
//
// Messages have the form "function or class: problem; remedy". Unless documented otherwise, a call
// that throws has changed nothing.
//   ValueError           a value, shape, length or key is wrong
//   TypeError            a dtype, layout or kind of container is wrong
//   RuntimeError         a valid call at the wrong time or place, e.g. inside a replica
//   NotImplementedError  a valid request that is not supported
//   IoError              a file is missing, truncated or malformed
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>
#include <utility>

namespace keel {

// Concatenates the arguments as operator<< prints them.
template <class... Args>
std::string str(const Args&... args) {
  std::ostringstream out;
  (out << ... << args);
  return std::move(out).str();
}

// Like str(), but returns an empty string if memory is exhausted.
template <class... Args>
std::string str_or_empty(const Args&... args) noexcept {
  try {
    return str(args...);
  } catch (...) {
    return {};
  }
}

// The base class of all exceptions of this library.
class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A value, shape, length or key is wrong.
class ValueError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  explicit ValueError(const Args&... args) : Error(str(args...)) {}
};

// A dtype, layout or kind of container is wrong.
class TypeError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  explicit TypeError(const Args&... args) : Error(str(args...)) {}
};

// A valid call at the wrong time or place.
class RuntimeError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  explicit RuntimeError(const Args&... args) : Error(str(args...)) {}
};

// A valid request that is not supported.
class NotImplementedError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  explicit NotImplementedError(const Args&... args) : Error(str(args...)) {}
};

// A file is missing, truncated or malformed.
class IoError : public Error {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  explicit IoError(const Args&... args) : Error(str(args...)) {}
};

// A ValueError about an id that its table does not have, which servers count.
class InvalidIdError : public ValueError {
 public:
  // Makes the message from its parts with str().
  template <class... Args>
  explicit InvalidIdError(const Args&... args) : ValueError(args...) {}
};

}  // namespace keel
