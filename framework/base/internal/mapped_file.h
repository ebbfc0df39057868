// MappedFile: a file whose bytes are read in place, without loading it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include <keel/framework/base/function_ref.h>

namespace keel {

// Maps a whole file read-only. Opening reads nothing: the system reads a page when it is accessed
// first, and processes that map one file share its pages. The mapping keeps the file alive if it
// is renamed or deleted.
//
// If another program truncates the file, accesses beyond its new end raise SIGBUS, which ends the
// process. guard_mapped_files() makes the process print the name of the file first.
//
// Const members may be called from any number of threads.
class MappedFile {
 public:
  // Throws IoError if the file cannot be opened or mapped, or is not a regular file.
  explicit MappedFile(const std::string& path);
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return {data_, size_}; }

  // Moves a range of the mapping from the pages of the file to anonymous memory on huge pages,
  // which makes random reads faster. Addresses and bytes stay the same, and other threads may read
  // the range meanwhile. Works piece by piece; calls `go_on` before each piece and stops once it
  // returns false. Returns the number of bytes that have been moved; fewer than requested if the
  // system has no memory left.
  size_t promote(size_t offset, size_t size, FunctionRef<bool()> go_on) const;
  // Returns the bytes of huge pages that promote() has taken so far.
  size_t promoted_bytes() const;

 private:
  const std::string path_;
  size_t size_ = 0;
  const std::byte* data_ = nullptr;
  struct Promotion;
  const std::unique_ptr<Promotion> promotion_;
};

// Handles SIGBUS in mapped files: the process prints the name of the file to stderr and exits with
// status 1 instead of dying by the signal. Other causes of SIGBUS keep their effect. For servers;
// a library must not change a program's signal handlers unasked.
void guard_mapped_files();

}  // namespace keel
