// Zip archives: a few entries, read and written by name.
//
// Archives are not trusted: an entry that claims more bytes than its compressed size allows, or
// that grows out of proportion (unpack_limit.h), is refused before anything is unpacked, and no
// more than it claims is written.
//
// Thread safety: objects belong to one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <keel/framework/base/internal/temporary_file.h>

namespace keel {

class ZipFile {
 public:
  // Opens for reading: entries stored or deflated, zip64 too. IoError, naming the file, if it is
  // missing or no zip archive. Errors call it `name` if there is one, else by its path.
  explicit ZipFile(const std::string& path, const std::string& name = {});
  ~ZipFile();
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  bool has(const std::string& entry) const;
  // IoError if there is no such entry, it is damaged, encrypted, packed in another way, or longer
  // than `limit` bytes.
  std::string read(const std::string& entry, int64_t limit) const;
  // The same into an empty file, or as the file `to`. IoError too if the disk has no room for it.
  void extract(const std::string& entry, const TemporaryFile& to) const;
  void extract(const std::string& entry, const std::string& to) const;
  // Reads all entries to their end. IoError unless they are `entries`, in this order, fit their
  // checksums, and are described alike in both places that a zip archive has for it.
  void check(const std::vector<std::string>& entries) const;

 private:
  struct Impl;
  const std::unique_ptr<const Impl> impl_;
};

class ZipWriter {
 public:
  // The file appears under `path` when finish() returns, and not at all without it; entries are
  // stored, in the order in which they came.
  explicit ZipWriter(const std::string& path);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  void add(const std::string& entry, std::string text);
  void add_file(const std::string& entry, const std::string& file);  // which stays until finish()
  // Reads the archive back before it appears. IoError if the disk refuses or returns other bytes.
  void finish();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace keel
