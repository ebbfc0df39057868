// Temporary files that do not outlive the process that writes them.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

// A new file "<target>.tmp-<host>-<token>" of length 0, open for reading and writing. The
// destructor removes it. A killed process leaves its file behind; the process holds a lock (flock)
// on it while it runs, so that the next TemporaryFile of the same target can tell and removes it.
//
// Errors are IoErrors that name `target`.
class TemporaryFile {
 public:
  // For files in folders that other users see too.
  static constexpr unsigned kPrivate = 0600;

  // Throws if the folder of `target` does not exist or is not writable. `mode` is subject to umask.
  explicit TemporaryFile(std::string target, unsigned mode = 0666);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  const std::string& target() const { return target_; }
  const std::string& path() const { return path_; }

  void write(int64_t offset, std::string_view bytes) const;
  // Returns the number of bytes read, less than `count` only at the end of the file.
  size_t read(int64_t offset, char* to, size_t count) const;
  int64_t size() const;
  void resize(int64_t size) const;
  // Starts writing to the disk in the background.
  void start_sync() const;
  void sync() const;
  // Gives the file its target's name, in place of an older file, and closes it.
  void rename_to_target();

 private:
  void close();

  const std::string target_;
  std::string path_;
  int fd_ = -1;
};

// The names in a folder, in no order; none if it cannot be read. Unlike a directory_iterator, which
// ends the process, it throws std::bad_alloc if there is no memory.
std::vector<std::string> file_names(const std::string& folder);

// Removes temporary files of `target` whose processes have ended, except those of other hosts that
// are less than a day old: not every network file system shares its locks. A file that cannot be
// removed stays, without an error.
void remove_stale_temporaries(const std::string& target);

// The files of `folder` for which temporary files are left, sorted, and whether a running process
// still holds one of them.
struct TemporaryTarget {
  std::string target;  // name in the folder
  bool in_use = false;
};
std::vector<TemporaryTarget> temporary_targets(const std::string& folder);

}  // namespace keel
