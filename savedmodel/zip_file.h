// Zip archives: a few entries, read and written by name.
//
// Archives are not trusted: an entry that claims more bytes than its compressed size allows is
// refused before anything is unpacked, and no more than it claims is written.
//
// Thread safety: objects belong to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

namespace keel {

class ZipFile {
 public:
  // Opens for reading: entries stored or deflated, zip64 too. IoError, naming the file, if it is
  // missing or no zip archive.
  explicit ZipFile(const std::string& path);
  ~ZipFile();
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  bool has(const std::string& entry) const;
  // IoError if there is no such entry, it is damaged, encrypted, packed in another way, or longer
  // than `limit` bytes.
  std::string read(const std::string& entry, int64_t limit) const;
  // The same into a file. IoError too if the disk has no room for it.
  void extract(const std::string& entry, const std::string& to) const;

 private:
  struct Impl;
  const std::unique_ptr<const Impl> impl_;
};

class ZipWriter {
 public:
  // Writes `path` when finish() is called; entries are stored, in the order in which they came.
  explicit ZipWriter(const std::string& path);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  void add(const std::string& entry, std::string text);
  void add_file(const std::string& entry, const std::string& file);  // which stays until finish()
  // IoError if the disk refuses.
  void finish();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace keel
