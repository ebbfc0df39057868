// CompressedReader and CompressedWriter: sequential access to the bytes of a file that may be
// compressed. Private to framework/data.
//
// Files are not trusted: memory is limited to a buffer of fixed size, whatever they contain.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace keel::data {

// The compression of a file.
enum class Compression { kNone, kGzip, kZlib };

// Returns the compression that TensorFlow calls "", "GZIP" or "ZLIB". Throws ValueError, with
// `caller` in the message, for other names.
Compression compression_from_name(const std::string& caller, const std::string& name);

// Reads a file from start to end.
class CompressedReader {
 public:
  // Opens the file. Throws IoError if it cannot be opened and ValueError unless buffer_size > 0.
  // All messages, including those of read(), contain `caller`.
  CompressedReader(const std::filesystem::path& file, Compression compression, int64_t buffer_size,
                   std::string caller);
  ~CompressedReader();

  // Copies the next `size` bytes to `out` and returns the number of bytes copied, which is smaller
  // only at the end. Throws IoError if the file cannot be read or if its compressed data is damaged
  // or truncated.
  size_t read(char* out, size_t size);
  uint64_t offset() const { return offset_; }  // number of (uncompressed) bytes read so far
  // Returns an upper bound of the bytes that may follow. It is derived from the length of the file
  // and, if the file is compressed, the limit of unpack_limit.h. Returns UINT64_MAX if the length
  // is unknown.
  uint64_t most_remaining() const;
  // Returns true unless the compression is kNone.
  bool is_compressed() const { return inflater_ != nullptr; }
  // Returns true if an uncompressed file starts like a gzip file.
  bool looks_gzipped() const { return looks_gzipped_; }
  // Returns "caller: file 'f', offset 12", the prefix of messages.
  std::string place(uint64_t offset) const;

 private:
  struct Inflater;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void refill();
  size_t read_file(char* out, size_t size);
  size_t inflate_some(char* out, size_t size);

  const std::string name_;
  const std::string caller_;
  std::unique_ptr<std::FILE, Close> file_;
  std::unique_ptr<Inflater> inflater_;  // null if not compressed
  std::vector<char> buffer_;            // (uncompressed) bytes to return
  size_t begin_ = 0, end_ = 0;          // unread part of buffer_
  bool ended_ = false;
  bool looks_gzipped_ = false;
  uint64_t offset_ = 0;
  uint64_t file_bytes_ = 0;  // bytes read from the file
};

// Writes a file from start to end.
class CompressedWriter {
 public:
  // Creates the file or truncates an existing one. Throws IoError, with `caller` in the message, if
  // that fails.
  CompressedWriter(const std::filesystem::path& file, Compression compression, std::string caller);
  // Closes the file and ignores errors; call close() to detect them.
  ~CompressedWriter();

  // Appends bytes. This and the following members throw IoError if writing fails. Throws
  // RuntimeError if the file is closed.
  void write(std::string_view bytes);
  // Makes everything written so far readable by other processes.
  void flush();
  // Writes everything to the disk and closes the file.
  void close();
  // Returns true after close().
  bool closed() const { return file_ == nullptr; }

 private:
  struct Deflater;
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  void deflate_all(std::string_view bytes, int mode);
  void write_file(const char* bytes, size_t size);
  [[noreturn]] void fail() const;

  const std::string name_;
  const std::string caller_;
  std::unique_ptr<std::FILE, Close> file_;
  std::unique_ptr<Deflater> deflater_;  // null if not compressed
};

}  // namespace keel::data
