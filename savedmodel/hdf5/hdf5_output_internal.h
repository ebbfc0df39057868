// The output of Hdf5Writer: a file driver for the HDF5 library that tolerates full disks.
#pragma once

#include <cstdint>
#include <exception>
#include <string_view>

#include <keel/framework/base/internal/temporary_file.h>

namespace keel::hdf5_internal {

// When a write fails while HDF5 closes an object, the library leaks memory, loops or crashes. The
// driver for this file therefore reports success for every call, and keeps the first error for
// check(). After an error nothing more is written.
class Hdf5Output {
 public:
  explicit Hdf5Output(const TemporaryFile& file) : file_(file) {}
  Hdf5Output(const Hdf5Output&) = delete;
  Hdf5Output& operator=(const Hdf5Output&) = delete;

  // Creates the HDF5 file and returns its id, which is negative on failure. This object must
  // outlive the id.
  int64_t create();
  // Throws the first error of the file. Call it after every call that may write or close.
  void check() const;

  // Discards what the library has not written yet.
  void abandon() noexcept { abandoned_ = true; }

  // Called by the driver.
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
  // Identifies the file. Files that the library could not close stay in its lists, so an address
  // may be reused and does not identify a file.
  const int64_t number_ = next_number();
  int64_t end_ = 0;
  std::exception_ptr error_;
  bool abandoned_ = false;
};

}  // namespace keel::hdf5_internal
