// CsvReader: splits a CSV file into records of fields, through a buffer of fixed size.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keel::data {

class CsvReader {
 public:
  // A field as it stands in the file, without its outer quotes.
  struct Field {
    const char* begin = nullptr;
    const char* end = nullptr;
    bool doubled = false;  // has quotes written twice

    std::string_view text() const { return {begin, static_cast<size_t>(end - begin)}; }
    std::string unescaped() const;  // quotes written once
  };

  // IoError, naming `who`, if the file cannot be read. Errors of next() name it too.
  CsvReader(const std::filesystem::path& file, char delimiter, std::string who);

  // The fields of the next record, valid until the next call; lines without a character are
  // skipped. False at the end of the file. IoError for a quote that is not closed or is followed
  // by anything but the end of its field, and for a record longer than 64 MiB.
  bool next();
  std::span<const Field> fields() const { return fields_; }

  int64_t row() const { return records_ - 1; }  // of the current record; 0 is the header
  // "who: file 'f.csv', row 3"
  std::string place() const;

 private:
  bool split();
  const char* split_quoted(const char* p, const char* end);
  void refill();

  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };

  const std::string name_;
  const std::string who_;
  std::unique_ptr<std::FILE, Close> file_;
  bool stops_[256] = {};      // characters that may end a field without quotes
  std::vector<char> buffer_;  // the data, then a line break that stops every search
  size_t begin_ = 0;          // of the next record
  size_t end_ = 0;            // of the data
  bool file_ended_ = false;
  int64_t records_ = 0;
  std::vector<Field> fields_;
};

}  // namespace keel::data
