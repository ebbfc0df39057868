// Where Hdf5Writer's bytes go: a file driver for the HDF5 library that survives full disks.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

#include <keel/framework/base/internal/temporary_file.h>

namespace keel::hdf5_internal {

// HDF5 loses track of its own objects when a write fails while it closes them: it then leaks, loops
// or crashes. So its driver for this file reports every call as done, and keeps the first error
// for check(). After an error nothing more is written.
class Hdf5Output {
 public:
  explicit Hdf5Output(const TemporaryFile& file) : file_(file) {}
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;

  // Creates the HDF5 file and returns its id, negative if the library refuses. The object must
  // outlive the id.
  int64_t create();
  // Throws the first error of the file; to be called after every call that may write or close.
  void check() const;

  // Drops whatever the library has not written yet.
  void abandon() noexcept { abandoned_ = true; }

  // For the driver.
  void write(int64_t offset, std::string_view bytes);
  void read(int64_t offset, char* to, size_t count);
  void resize(int64_t size);
  int64_t end() const { return end_; }
  int64_t number() const { return number_; }

 private:
  template <class Fn>
  void attempt(Fn fn);

  static int64_t next_number();
  bool writes() const { return !abandoned_ && error_ == nullptr; }

  const TemporaryFile& file_;
  // Files that the library could not close stay in its lists: addresses would not tell them apart.
  const int64_t number_ = next_number();
  int64_t end_ = 0;
  std::exception_ptr error_;
  bool abandoned_ = false;
};

}  // namespace keel::hdf5_internal
