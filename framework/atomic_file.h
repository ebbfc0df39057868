// Files that appear under their name whole or not at all.
#pragma once

#include <cstdint>
#include <string>

namespace keel {

// An empty file beside `path` to write to. commit() makes the bytes durable and gives the file its
// name, in place of one that was there; without it the destructor removes the temporary file.
class AtomicFile {
 public:
  // IoError if the folder of `path` does not exist or may not be written, or if it is a folder.
  explicit AtomicFile(std::string path);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  const std::string& path() const { return path_; }
  const std::string& temporary_path() const { return temporary_path_; }
  // To be called once whoever wrote the temporary file has closed it. IoError if the disk refuses.
  void commit();

 private:
  const std::string path_, temporary_path_;
  bool committed_ = false;
};

void write_file_atomically(const std::string& path, const std::string& text);
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
