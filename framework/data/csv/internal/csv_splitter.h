// CsvSplitter: locates the fields of CSV records in their text. Private to framework/data.
//
// Records without quotes that have the expected number of fields are split 64 bytes at a time with
// bit masks; other records are split character by character.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace keel::data {

inline constexpr size_t kCsvPadding = 128;  // bytes after a text that may be read

// Text that begins with a record. It is followed by a line break and kCsvPadding readable bytes.
struct CsvText {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool last = false;  // true if the file ends here; otherwise the last record may be incomplete
};

// How the fields of a file are separated and quoted; see CsvOptions.
struct CsvDialect {
  char delimiter = ',';
  bool quoting = true;
  int64_t max_quoted_lines = 100;
};

// The file and the caller, for error messages.
struct CsvPlace {
  std::string file;
  std::string caller;
  // Returns the number of the line of a position in the text, or 0 if it is unknown.
  std::function<int64_t(const char*)> line_of = {};
  std::string of_row(int64_t row) const;  // "caller: file 'f.csv', row 3"; row 0 is the header
};

// A field as it appears in the text, without its outer quotes.
struct CsvField {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool doubled = false;  // contains doubled quotes

  // Returns the field as it appears in the text.
  std::string_view text() const { return {begin, static_cast<size_t>(end - begin)}; }
  std::string unescaped() const;  // with doubled quotes replaced by single ones
};

// Splits text into records and fields.
class CsvSplitter {
 public:
  // Throws ValueError, with the caller of `place` in the message, if the delimiter is a quote or a
  // line break or max_quoted_lines is less than 1. `place` must outlive the splitter.
  CsvSplitter(const CsvPlace& place, const CsvDialect& dialect);

  // Splits the next record into `fields` and moves text.begin past it. Empty lines are skipped.
  // Returns false if no complete record is left. Throws like split().
  bool next(CsvText& text, int64_t row, std::vector<CsvField>& fields) const;

  // Sets the number of fields that split() requires of each record.
  void expect_fields(size_t count);
  // Splits the next records and moves text.begin past them. Returns their number, which is at
  // most `most` but may be smaller at any time; 0 means that no complete record is left. `row` is
  // the number of the first record. Throws IoError if the first record is malformed: a quote is not
  // closed or is followed by anything but the end of its field, a quoted field has too many lines,
  // or the number of fields is wrong.
  int64_t split(CsvText& text, int64_t row, int64_t most);
  // Returns a field of the records that were split last.
  CsvField field(int64_t record, size_t i) const;
  // Direct access for reading one field of all records: field i of a record consists of the bytes
  // [begins[j], ends[j]) of base, where j = record * stride + i. For a field with doubled quotes,
  // ends[j] has the additional bit kDoubled.
  static constexpr uint32_t kDoubled = uint32_t{1} << 31;
  const char* base() const { return base_; }
  const uint32_t* begins() const { return begins_.get(); }
  const uint32_t* ends() const { return ends_.get(); }
  size_t stride() const { return fields_; }

  // Moves text.begin past the next `most` records, or as many as there are, and returns their
  // number. A malformed record consumes all text that follows it.
  int64_t skip(CsvText& text, int64_t most) const;

 private:
  enum class Found { kRecord, kCutOff, kOpenQuote, kLongQuote, kTextAfterQuote };
  struct Stop {  // position of the error in a malformed record
    const char* field = nullptr;
    const char* at = nullptr;
  };
  uint64_t quotes_in(const char* p) const;
  template <class OnField>
  Found scan(const char*& p, const CsvText& text, Stop& stop, OnField&& on_field) const;
  int64_t split_plain(CsvText& text, int64_t done, int64_t most);
  int64_t regular_records(const uint32_t* ends, size_t separators, int64_t lines) const;
  [[noreturn]] void fail(int64_t row, const CsvText& text, Found found, const Stop& stop) const;

  const CsvPlace& place_;
  const CsvDialect dialect_;
  bool stops_[256] = {};  // characters that may end an unquoted field
  size_t fields_ = 0;
  int64_t most_records_ = 0;
  const char* base_ = nullptr;
  std::unique_ptr<uint32_t[]> begins_, ends_;
};

}  // namespace keel::data
