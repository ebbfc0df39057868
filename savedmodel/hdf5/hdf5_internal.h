// Helpers of the HDF5 reader and writer; internal to them. Ids and statuses are declared by the
// plain names of the library's types.
#pragma once

#include <cstdint>
#include <hdf5.h>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <keel/framework/base/errors.h>
#include <keel/framework/base/shape.h>

namespace keel::hdf5_internal {

// A scope for calls of the HDF5 library: one thread at a time, and without the library's messages
// on stderr.
class LibraryScope {
 public:
  LibraryScope();
  ~LibraryScope();
  LibraryScope(const LibraryScope&) = delete;
  LibraryScope& operator=(const LibraryScope&) = delete;

 private:
  const std::unique_lock<std::recursive_mutex> lock_;
  int (*handler_)(int64_t, void*) = nullptr;
  void* handler_data_ = nullptr;
};

// Owns an id of the library and closes it with the function given.
class Id {
 public:
  using Close = int (*)(int64_t);
  Id(int64_t id, Close closer) : id_(id), close_(closer) {}
  Id(Id&& other) noexcept : id_(std::exchange(other.id_, kNone)), close_(other.close_) {}
  ~Id() { close(); }
  Id(const Id&) = delete;
  Id& operator=(const Id&) = delete;
  Id& operator=(Id&&) = delete;

  bool valid() const { return id_ >= 0; }
  operator int64_t() const { return id_; }  // NOLINT: implicit, for calls of the library
  bool close() { return id_ < 0 || close_(std::exchange(id_, kNone)) >= 0; }

 private:
  static constexpr int64_t kNone = -1;
  int64_t id_;
  Close close_;
};

// Returns the innermost message of the library's error stack in parentheses, and clears the stack.
// Returns an empty string if there is none.
std::string library_message();

// The context of an error: "model.h5, /model_weights/dense: ".
struct Place {
  const std::string& file;
  const std::string& object;
  std::string attribute = {};

  template <class... Args>
  [[noreturn]] void fail(const Args&... what) const {
    const std::string message = library_message();
    throw IoError(file, ", ", object.empty() ? "/" : object,
                  attribute.empty() ? "" : ", attribute " + attribute, ": ", what..., message);
  }
  Id check(int64_t id, Id::Close close, const char* what) const {
    if (id < 0) fail(what);
    return {id, close};
  }
  void check(int status, const char* what) const {
    if (status < 0) fail(what);
  }
};

// Splits a path into its parts, without empty ones.
std::vector<std::string> parts_of(const std::string& path);

// Selects rows [first, first + rows[0]) of a dataset's space. Its rows must have the row shape of
// `rows`; otherwise throws IoError.
void select_rows(const Place& place, int64_t space, int64_t first, const Shape& rows);

}  // namespace keel::hdf5_internal
