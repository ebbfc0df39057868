// TFRecord files: a run of records, strings of any bytes, each with its length and checksums.
//
//   auto clicks = data::TFRecordDataset({"clicks-0.gz", "clicks-1.gz"}, {.compression_type =
//   "GZIP"})
//                     .batch(256)
//                     .map(data::ExampleParser(features));  // example_parser.h
//
// Files are not trusted: no length is believed that the file cannot hold or whose checksum is
// wrong, and memory is bounded by the longest record and a buffer.
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

struct TFRecordOptions {
  std::string compression_type = {};  // of all files: "", "GZIP" or "ZLIB"
  int64_t buffer_size = 256 * 1024;   // bytes read at once
};

// The records of one file in order.
class TFRecordReader {
 public:
  // IoError if the file cannot be opened; ValueError for options that are none.
  explicit TFRecordReader(const std::filesystem::path& file, const TFRecordOptions& options = {});
  ~TFRecordReader();

  // The next record, in place of what `record` held. False at the end. IoError, naming the file and
  // the offset (of bytes not compressed), for one that is damaged or cut off; there is no next one
  // after it.
  bool next(std::string& record);

 private:
  const std::unique_ptr<CompressedReader> bytes_;
};

struct TFRecordWriterOptions {
  std::string compression_type = {};  // "", "GZIP" or "ZLIB"
};

class TFRecordWriter {
 public:
  // Makes the file, or empties one that is there. IoError if that cannot be, and if the disk
  // refuses later; ValueError for options that are none.
  explicit TFRecordWriter(const std::filesystem::path& file,
                          const TFRecordWriterOptions& options = {});
  ~TFRecordWriter();  // closes the file; what goes wrong is not told

  void write(std::string_view record);  // RuntimeError once closed
  void flush();                         // others can read what was written so far
  void close();

 private:
  const std::unique_ptr<CompressedWriter> bytes_;
};

// String scalars: the records of the files, one file after the other. Each is opened when it is
// its turn; errors as of TFRecordReader, at their place in the order. ValueError for no files.
class TFRecordDataset : public Dataset {
 public:
  explicit TFRecordDataset(std::vector<std::filesystem::path> files,
                           const TFRecordOptions& options = {});
  explicit TFRecordDataset(const std::filesystem::path& file, const TFRecordOptions& options = {})
      : TFRecordDataset(std::vector<std::filesystem::path>{file}, options) {}
};

}  // namespace keel::data
