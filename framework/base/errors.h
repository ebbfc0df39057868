// Errors: everything this library throws on purpose.
//
// One style for messages: "Who: what is required, received what". An error is
// thrown before any state changes.
//   ValueError           a value, shape, length or key is wrong
//   TypeError            a dtype, layout or kind of container is wrong
//   RuntimeError         a right call at the wrong time or place
//   NotImplementedError  a legal request that is not offered
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

// The same; nothing if there is no memory for it.
template <class... Args>
std::string str_or_empty(const Args&... args) noexcept {
  try {
    return str(args...);
  } catch (...) {
    return {};
  }
}

class Error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class ValueError : public Error {
 public:
  template <class... Args>
  explicit ValueError(const Args&... args) : Error(str(args...)) {}
};

class TypeError : public Error {
 public:
  template <class... Args>
  explicit TypeError(const Args&... args) : Error(str(args...)) {}
};

class RuntimeError : public Error {
 public:
  template <class... Args>
  explicit RuntimeError(const Args&... args) : Error(str(args...)) {}
};

class NotImplementedError : public Error {
 public:
  template <class... Args>
  explicit NotImplementedError(const Args&... args) : Error(str(args...)) {}
};

class IoError : public Error {
 public:
  template <class... Args>
  explicit IoError(const Args&... args) : Error(str(args...)) {}
};

}  // namespace keel
