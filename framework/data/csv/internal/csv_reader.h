// CsvReader: reads the text of a CSV file through a buffer. Private to framework/data.
//
// The file is read, not memory-mapped. If another program truncates a mapped file, the process gets
// a signal; here it gets an error. Copying within the cache costs a tenth of parsing.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <keel/framework/data/csv/internal/csv_splitter.h>

namespace keel::data {

// Reads the text of a CSV file and counts its records. The buffer grows only for records that do
// not fit.
class CsvReader {
 public:
  // Throws IoError if the file cannot be read. All messages contain `caller`.
  CsvReader(const std::filesystem::path& file, const CsvDialect& dialect, std::string caller);
  CsvReader(const CsvReader&) = delete;
  CsvReader& operator=(const CsvReader&) = delete;

  // Reads the header line, which must come first, and returns its names. Throws IoError if the file
  // is empty.
  std::vector<std::string> header();
  // Must be called instead of header() for files without a header: the text begins with row 1.
  void begin_without_header() { row_ = 1; }

  // Returns the file and the caller for messages.
  const CsvPlace& place() const { return place_; }
  // Returns the text that has been read but not consumed. It starts at the start of a record.
  CsvText text() const;
  // Consumes `records` records, which end at `end`.
  void take(const char* end, int64_t records);
  // Reads more text and appends it. Moves the text, so pointers into it become invalid. Throws
  // IoError for a record longer than 64 MiB.
  void refill();
  int64_t row() const { return row_; }  // the number of the record at the start of the text

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  int64_t line_of(const char* position) const;

  const CsvPlace place_;
  const CsvDialect dialect_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<char> buffer_;  // the text, followed by a line break and padding
  size_t begin_ = 0;          // start of the next record
  size_t end_ = 0;            // end of the text
  uint64_t offset_ = 0;       // position of the buffer in the file
  bool file_ended_ = false;
  int64_t row_ = 0;
};

}  // namespace keel::data
