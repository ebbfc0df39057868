// Zip archives whose entries are read and written by name.
//
// Archives are not trusted. An entry is refused before anything is unpacked if it claims more bytes
// than its compressed size allows or expands beyond a limit (unpack_limit.h). Never more bytes than
// claimed are written.
//
// Thread safety: an object must be used by one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <keel/framework/base/internal/temporary_file.h>

namespace keel {

// A zip archive that is open for reading.
class ZipFile {
 public:
  // Opens an archive for reading. Entries may be stored or deflated; zip64 is supported. Throws
  // IoError, naming the file, if it is missing or not a zip archive. Errors show `name` instead of
  // the path if `name` is not empty.
  explicit ZipFile(const std::string& path, const std::string& name = {});
  ~ZipFile();
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  // Returns true if the archive contains the entry.
  bool has(const std::string& entry) const;
  // Returns the contents of an entry. Throws IoError if there is no such entry, if it is damaged,
  // encrypted or compressed with an unsupported method, or if it is longer than `limit` bytes.
  std::string read(const std::string& entry, int64_t limit) const;
  // Extract an entry into an empty temporary file or into a new file `to`. Throws the errors of
  // read(), and IoError if the disk is full.
  void extract(const std::string& entry, const TemporaryFile& to) const;
  void extract(const std::string& entry, const std::string& to) const;
  // Reads all entries to their end. Throws IoError unless they are `entries` in this order, match
  // their checksums, and have the same description in both headers of the archive.
  void check(const std::vector<std::string>& entries) const;

 private:
  struct Impl;
  const std::unique_ptr<const Impl> impl_;
};

// Writes a zip archive with uncompressed entries.
class ZipWriter {
 public:
  // Creates a writer. The file appears under `path` only when finish() returns. Entries are stored
  // in the order in which they were added.
  explicit ZipWriter(const std::string& path);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  // Add an entry with the given contents, or with those of a file.
  void add(const std::string& entry, std::string text);
  void add_file(const std::string& entry, const std::string& file);  // must exist until finish()
  // Writes the archive, reads it back and then makes it visible. Throws IoError if writing fails or
  // if the disk returns other bytes.
  void finish();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

}  // namespace keel
