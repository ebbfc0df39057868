// Files that appear under their name either completely or not at all.
#pragma once

#include <cstdint>
#include <string>

#include <keel/framework/base/internal/temporary_file.h>

namespace keel {

// A new empty file next to `path` to write to. commit() makes the bytes durable and renames the
// file to `path`, replacing any existing file. Without commit() the destructor removes the
// temporary file. The constructor first removes temporary files of the same `path` left behind by
// killed processes.
class AtomicFile {
 public:
  // Throws IoError if the folder of `path` does not exist or is not writable, or if `path` is a
  // folder.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  // The final name of the file.
  const std::string& path() const { return file_.target(); }
  // The name of the file until commit() renames it.
  const std::string& temporary_path() const { return file_.path(); }
  // The open temporary file.
  const TemporaryFile& file() const { return file_; }
  // Syncs the file, renames it to path() and syncs its folder. All other writers of the temporary
  // file must have closed it. Throws IoError if a system call fails.
  void commit();

 private:
  TemporaryFile file_;
};

// Writes `text` through an AtomicFile and reads it back before renaming. Throws IoError if the
// bytes differ or a system call fails.
void write_file_atomically(const std::string& path, const std::string& text);
// Like write_file_atomically(), but writes in place to a pipe, a terminal or another special file.
// A symbolic link is kept; the file that it points to is replaced.
void write_text_file(const std::string& path, const std::string& text);
// Returns the contents of the file. Throws IoError if the file is missing, unreadable or longer
// than `limit` bytes.
std::string read_text_file(const std::string& path, int64_t limit);

// Returns true if there is a file or folder of this name. Throws IoError, unlike
// std::filesystem::exists, if the system cannot tell.
bool path_exists(const std::string& path);
// Creates a folder and those above it, unless it exists. Throws IoError.
void create_folder(const std::string& path);
// Removes the file and syncs its folder. A missing file is not an error.
void remove_file(const std::string& path);

// Appends a seal to the file: a trailer with the length and a checksum of all preceding bytes.
// check_seal() detects damage to a sealed file before any of its contents is used. Any change
// within one aligned group of 8 bytes is detected with certainty. Throws IoError if the file cannot
// be read or written.
void seal_file(const std::string& path);
// Throws IoError unless the file ends in a seal that matches its contents. Reads the whole file.
void check_seal(const std::string& path);
// Returns the checksum stored in the file's seal as 16 hexadecimal digits. Throws IoError if the
// file has no seal.
std::string sealed_checksum(const std::string& path);

}  // namespace keel
