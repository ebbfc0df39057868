// Temporary files that do not outlive the process that writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

// A new file "<target>.tmp-<host>-<token>" of length 0, open for reading and writing. The
// destructor removes it. A killed process leaves its file behind. A running process holds a lock
// (flock) on its file, so that the next TemporaryFile of the same target can recognize stale files
// and remove them.
//
// All member functions throw IoError, with `target` in the message, if a system call fails.
class TemporaryFile {
 public:
  // The mode of files in folders that other users can read.
  static constexpr unsigned kPrivate = 0600;

  // Creates the file. Throws IoError if the folder of `target` does not exist or is not writable.
  // `mode` is subject to umask.
  explicit TemporaryFile(std::string target, unsigned mode = 0666);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  // The name passed to the constructor.
  const std::string& target() const { return target_; }
  // The name of the temporary file.
  const std::string& path() const { return path_; }

  // Writes all bytes at `offset`.
  void write(int64_t offset, std::string_view bytes) const;
  // Reads `count` bytes at `offset`. Returns the number of bytes read, which is less than `count`
  // only at the end of the file.
  size_t read(int64_t offset, char* to, size_t count) const;
  // Returns the length of the file in bytes.
  int64_t size() const;
  // Truncates or extends the file to `size` bytes.
  void resize(int64_t size) const;
  // Starts flushing the file to the disk in the background.
  void start_sync() const;
  // Flushes the file to the disk (fsync).
  void sync() const;
  // Renames the file to target(), replacing any existing file, and closes it.
  void rename_to_target();

 private:
  void close();

  const std::string target_;
  std::string path_;
  int fd_ = -1;
};

// Returns the names of a folder's entries in no particular order; none if the folder cannot be
// read. Throws std::bad_alloc if memory is exhausted, unlike a directory_iterator, which ends the
// process.
std::vector<std::string> file_names(const std::string& folder);

// Removes temporary files of `target` whose processes have ended. Files of other hosts are removed
// only when they are at least a day old, because not every network file system shares its locks. A
// file that cannot be removed is left in place without an error.
void remove_stale_temporaries(const std::string& target);

// A file for which temporary files exist.
struct TemporaryTarget {
  std::string target;   // file name without the folder
  bool in_use = false;  // a running process may hold one of the temporary files
};
// Returns the files of `folder` for which temporary files exist, sorted by name.
std::vector<TemporaryTarget> temporary_targets(const std::string& folder);

}  // namespace keel
