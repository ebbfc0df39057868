// TFRecord files: sequences of records, which are arbitrary byte strings, each with its length and
// checksums.
//
//   auto clicks = data::TFRecordDataset({"clicks-0.gz", "clicks-1.gz"},
//                                       {.compression_type = "GZIP"})
//                     .batch(256)
//                     .map(data::ExampleParser(features));  // example_parser.h
//
// Files are not trusted: a length is used only if its checksum is correct and if the file can hold
// that many bytes. Memory is bounded by the longest record and a buffer.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <keel/framework/data/dataset.h>

namespace keel::data {

class CompressedReader;
class CompressedWriter;

// Options for reading.
struct TFRecordOptions {
  std::string compression_type = {};  // compression of all files: "", "GZIP" or "ZLIB"
  int64_t buffer_size = 256 * 1024;   // bytes read at once
};

// Reads the records of one file in order.
class TFRecordReader {
 public:
  // Throws IoError if the file cannot be opened and ValueError for invalid options.
  explicit TFRecordReader(const std::filesystem::path& file, const TFRecordOptions& options = {});
  ~TFRecordReader();

  // Reads the next record into `record` and returns true, or returns false at the end. Throws
  // IoError, with the file and the (uncompressed) offset, if the record is damaged or truncated.
  // Reading cannot continue after an error.
  bool next(std::string& record);

 private:
  const std::unique_ptr<CompressedReader> bytes_;
};

// Options for writing.
struct TFRecordWriterOptions {
  std::string compression_type = {};  // "", "GZIP" or "ZLIB"
};

// Writes records to one file.
class TFRecordWriter {
 public:
  // Creates the file or truncates an existing one. Throws ValueError for invalid options. The
  // constructor and all members throw IoError if writing fails.
  explicit TFRecordWriter(const std::filesystem::path& file,
                          const TFRecordWriterOptions& options = {});
  // Closes the file and ignores errors; call close() to detect them.
  ~TFRecordWriter();

  // Appends a record. Throws RuntimeError if the file is closed.
  void write(std::string_view record);
  // Makes all records written so far readable by other processes.
  void flush();
  // Writes all records to the disk and closes the file.
  void close();

 private:
  const std::unique_ptr<CompressedWriter> bytes_;
};

// A dataset of string scalars: the records of the files, one file after another. A file is opened
// when its first record is needed. Errors are those of TFRecordReader, thrown at their position in
// the order. Throws ValueError if `files` is empty.
class TFRecordDataset : public Dataset {
 public:
  explicit TFRecordDataset(std::vector<std::filesystem::path> files,
                           const TFRecordOptions& options = {});
  explicit TFRecordDataset(const std::filesystem::path& file, const TFRecordOptions& options = {})
      : TFRecordDataset(std::vector<std::filesystem::path>{file}, options) {}
};

}  // namespace keel::data
