// Reads and writes zip archives of a few entries.
//
// Archives are not trusted. An entry whose stated size exceeds what its compressed size allows
// (unpack_limit.h) is rejected before it is unpacked, and unpacking stops at the stated size.
//
// Thread safety: an object must not be used by several threads at once.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <keel/framework/base/internal/file_part.h>
#include <keel/framework/base/internal/temporary_file.h>

namespace keel {

// A zip archive that is open for reading.
class ZipFile {
 public:
  // Opens an archive with stored or deflated entries, including zip64. Throws IoError if it is
  // missing or not a zip archive. Errors call the file `name`, or its path if `name` is empty.
  explicit ZipFile(const std::string& path, const std::string& name = {});
  ~ZipFile();
  ZipFile(const ZipFile&) = delete;
  ZipFile& operator=(const ZipFile&) = delete;

  // Returns the names of all entries, in the order of the archive.
  std::vector<std::string> entries() const;
  // Returns true if the archive has this entry.
  bool has(const std::string& entry) const;
  // Returns the contents of an entry. Throws IoError if it does not exist, is damaged, encrypted or
  // compressed by another method, or is longer than `limit` bytes.
  std::string read(const std::string& entry, int64_t limit) const;
  // Write the contents of an entry to an empty temporary file, or to a new file at the path `to`.
  // Throw the errors of read(), and IoError if the file cannot be written.
  void extract(const std::string& entry, const TemporaryFile& to) const;
  void extract(const std::string& entry, const std::string& to) const;
  // Returns where the bytes of an entry lie if it is stored without compression; otherwise nothing.
  // Returns nothing too if the headers of the archive are damaged or unusual; read() then decides.
  std::optional<FilePart> stored(const std::string& entry) const;
  // Reads all entries. Throws IoError unless they are `entries`, in this order, match their
  // checksums, and have the same local and central headers.
  void check(const std::vector<std::string>& entries) const;

 private:
  struct Impl;
  const std::unique_ptr<const Impl> impl_;
};

// Writes a zip archive. Entries are stored without compression, in the order of their calls.
class ZipWriter {
 public:
  // The file appears at `path` when finish() returns, and not at all without finish().
  explicit ZipWriter(const std::string& path);
  ~ZipWriter();
  ZipWriter(const ZipWriter&) = delete;
  ZipWriter& operator=(const ZipWriter&) = delete;

  // Adds an entry with these contents.
  void add(const std::string& entry, std::string text);
  // Adds an entry with the contents of a file, which must exist until finish() and not change. The
  // contents begin at a multiple of 4096 bytes in the archive, so that they can be mapped.
  void add_file(const std::string& entry, const std::string& file);
  // Writes the archive, reads it back, and moves it to its path. Throws IoError if it cannot be
  // written or reads back other bytes.
  void finish();

 private:
  struct Impl;
  const std::unique_ptr<Impl> impl_;
};

// Returns true if the file can be opened and begins like a zip archive, whatever its name is.
bool begins_with_zip(const std::string& path);

}  // namespace keel
