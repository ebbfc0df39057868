// CsvReader: the text of a CSV file, through a buffer of fixed size. Private to framework/data.
//
// It is read, not mapped: a file that another program cuts short meanwhile is an error of ours and
// not a signal, and copying within the cache costs a tenth of parsing.
#pragma once

#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <keel/framework/data/csv/internal/csv_splitter.h>

namespace keel::data {

class CsvReader {
 public:
  // IoError, naming `caller`, if the file cannot be read. Errors of the members name it too.
  CsvReader(const std::filesystem::path& file, char delimiter, std::string caller);

  // The names in the header line, which comes first. IoError if the file is empty.
  std::vector<std::string> header();
  // For files without one: the text begins with row 1.
  void begin_without_header() { row_ = 1; }

  const CsvPlace& place() const { return place_; }
  // What was read and not taken, from the start of a record.
  CsvText text() const;
  // Takes `records` records, up to `end`.
  void take(const char* end, int64_t records);
  // Reads more behind the text, which moves. IoError for a record longer than 64 MiB.
  void refill();
  int64_t row() const { return row_; }  // the number of the record that the text begins with

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const CsvPlace place_;
  const char delimiter_;
  std::unique_ptr<std::FILE, Close> file_;
  std::vector<char> buffer_;  // the text, then a line break and padding
  size_t begin_ = 0;          // of the next record
  size_t end_ = 0;            // of the text
  bool file_ended_ = false;
  int64_t row_ = 0;
};

}  // namespace keel::data
