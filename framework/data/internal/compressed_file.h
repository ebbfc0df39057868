// CompressedReader, CompressedWriter: the bytes of a file that may be compressed, one after the
// other. Private to framework/data.
//
// Files are not trusted: memory is a buffer of fixed size, whatever they hold.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace keel::data {

enum class Compression { kNone, kGzip, kZlib };

// "", "GZIP" or "ZLIB", as TensorFlow names them. ValueError, naming `caller`, for others.
Compression compression_from_name(const std::string& caller, const std::string& name);

class CompressedReader {
 public:
  // IoError, naming `caller`, if the file cannot be opened. Errors of read() name it too.
  CompressedReader(const std::filesystem::path& file, Compression compression, int64_t buffer_size,
                   std::string caller);
  ~CompressedReader();

  // Copies the next `size` bytes; fewer only at the end. Returns how many. IoError for a file that
  // cannot be read, or whose compressed form is damaged or cut off.
  size_t read(char* out, size_t size);
  uint64_t offset() const { return offset_; }  // bytes read so far
  // No more bytes than these may follow, given the length of the file and, if it is compressed, the
  // limit of unpack_limit.h. UINT64_MAX if the length is not known.
  uint64_t most_remaining() const;
  bool is_compressed() const { return inflater_ != nullptr; }
  // Whether the file, read as it is, starts as a gzip file does.
  bool looks_gzipped() const { return looks_gzipped_; }
  // "who: file 'f', offset 12"
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
  std::vector<char> buffer_;            // of bytes to give
  size_t begin_ = 0, end_ = 0;          // what is left of them
  bool ended_ = false;
  bool looks_gzipped_ = false;
  uint64_t offset_ = 0;
  uint64_t file_bytes_ = 0;  // read from the file
};

class CompressedWriter {
 public:
  // Makes the file, or empties one that is there. IoError, naming `caller`, if that cannot be.
  CompressedWriter(const std::filesystem::path& file, Compression compression, std::string caller);
  ~CompressedWriter();  // closes, without a word of errors

  // IoError if the disk refuses, as in the members below.
  void write(std::string_view bytes);
  // What was written so far can be read by others.
  void flush();
  void close();
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
