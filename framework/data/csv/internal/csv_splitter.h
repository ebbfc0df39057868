// CsvSplitter: where the fields of CSV records lie in their text. Private to framework/data.
//
// Records without quotes, of the number of fields that the file has, are split by the bits of 64
// bytes at a time; others character by character.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace keel::data {

inline constexpr size_t kCsvPadding = 128;  // bytes behind a text that may be read

// Text that begins with a record. A line break stands behind its end, then kCsvPadding bytes.
struct CsvText {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool last = false;  // the file ends here; else a record may be cut off
};

// How errors name a place.
struct CsvPlace {
  std::string file;
  std::string caller;
  std::string of_row(int64_t row) const;  // "who: file 'f.csv', row 3"; 0 is the header
};

// A field as it stands in the text, without its outer quotes.
struct CsvField {
  const char* begin = nullptr;
  const char* end = nullptr;
  bool doubled = false;  // has quotes written twice

  std::string_view text() const { return {begin, static_cast<size_t>(end - begin)}; }
  std::string unescaped() const;  // quotes written once
};

class CsvSplitter {
 public:
  // ValueError, naming the place's `caller`, for a delimiter that is a quote or a line break.
  CsvSplitter(const CsvPlace& place, char delimiter);

  // The fields of the next record, moving text.begin behind it; lines without a character are
  // skipped. False if no whole record is left. Errors as of split().
  bool next(CsvText& text, int64_t row, std::vector<CsvField>& fields) const;

  // Of the next records, that many each.
  void expect_fields(size_t count);
  // Splits the next records, `most` at most and as many as it likes, and moves text.begin behind
  // them. Returns how many; 0 if no whole record is left. `row` is the number of the first one.
  // IoError if that one is malformed: a quote that is not closed or is followed by anything but
  // the end of its field, or another number of fields.
  int64_t split(CsvText& text, int64_t row, int64_t most);
  // Of what was split last.
  CsvField field(int64_t record, size_t i) const;
  // The same for those that look at one field of all records, bytes [begins[j], ends[j]) of base,
  // j = record * stride + i. Of a doubled one the size is at least kDoubled / 2.
  static constexpr uint32_t kDoubled = uint32_t{1} << 31;
  const char* base() const { return base_; }
  const uint32_t* begins() const { return begins_.get(); }
  const uint32_t* ends() const { return ends_.get(); }
  size_t stride() const { return fields_; }

  // Moves text.begin behind the next `most` records, or as many as there are; returns how many. A
  // malformed one takes all that follows with it.
  int64_t skip(CsvText& text, int64_t most) const;

 private:
  enum class Found { kRecord, kCutOff, kOpenQuote, kTextAfterQuote };
  struct Stop {  // where a record that is malformed is so
    const char* field = nullptr;
    const char* at = nullptr;
  };
  template <class OnField>
  Found scan(const char*& p, const CsvText& text, Stop& stop, OnField&& on_field) const;
  int64_t split_plain(CsvText& text, int64_t done, int64_t most);
  int64_t regular_records(const uint32_t* ends, size_t separators, int64_t lines) const;
  [[noreturn]] void fail(int64_t row, const CsvText& text, Found found, const Stop& stop) const;

  const CsvPlace& place_;
  const char delimiter_;
  bool stops_[256] = {};  // characters that may end a field without quotes
  size_t fields_ = 0;
  int64_t most_records_ = 0;
  const char* base_ = nullptr;
  std::unique_ptr<uint32_t[]> begins_, ends_;
};

}  // namespace keel::data
