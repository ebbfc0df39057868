// Files that appear under their name whole or not at all.
#pragma once

#include <cstdint>
#include <string>

#include <keel/framework/base/internal/temporary_file.h>

namespace keel {

// An empty file beside `path` to write to. commit() makes the bytes durable and gives the file its
// name, in place of one that was there; without it the destructor removes the temporary file. Files
// that killed processes left behind for the same `path` are removed first.
class AtomicFile {
 public:
  // IoError if the folder of `path` does not exist or may not be written, or if it is a folder.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return file_.target(); }
  const std::string& temporary_path() const { return file_.path(); }
  const TemporaryFile& file() const { return file_; }
  // Every other writer of the temporary file must have closed it. IoError if the disk refuses.
  void commit();

 private:
  TemporaryFile file_;
};

// Reads the text back before the file appears under its name.
void write_file_atomically(const std::string& path, const std::string& text);
// The same, except that a pipe, a terminal or another special file is written in place.
void write_text_file(const std::string& path, const std::string& text);
// IoError if the file is missing, unreadable or longer than `limit` bytes.
std::string read_text_file(const std::string& path, int64_t limit);
// Removes the file, durably. One that is not there is no error.
void remove_file(const std::string& path);

// A seal is a trailer with the length and a checksum of all bytes before it: whatever happened to
// a sealed file on its disk is noticed before anything of it is believed. Any change of one
// aligned group of 8 bytes is found for certain.
void seal_file(const std::string& path);
// IoError unless the file ends in a seal that fits. Reads the whole file.
void check_seal(const std::string& path);
// The checksum in a file's seal, 16 hexadecimal digits. IoError if it has no seal.
std::string sealed_checksum(const std::string& path);

}  // namespace keel
