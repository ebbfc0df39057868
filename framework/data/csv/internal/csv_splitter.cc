#include <keel/framework/data/csv/internal/csv_splitter.h>

#include <absl/strings/str_cat.h>
#include <algorithm>
#include <bit>
#include <cstring>

#include <keel/framework/base/errors.h>
#include <keel/framework/data/internal/byte_bits.h>

namespace keel::data {
namespace {

// The maximum number of records that are split at once. Their text and fields stay in the L1 cache
// until they are parsed.
constexpr int64_t kMostRecords = 64;
constexpr size_t kFieldsAtOnce = 4096;

// Returns p advanced past any empty lines.
const char* behind_empty_lines(const char* p, const char* end) {
  while (p < end) {
    if (*p == '\n') {
      ++p;
    } else if (p + 1 < end && *p == '\r' && p[1] == '\n') {
      p += 2;
    } else {
      break;
    }
  }
  return p;
}

// Returns a mask of the bits below bit i, where i may be 64.
uint64_t below(int64_t i) { return i >= 64 ? ~uint64_t{0} : (uint64_t{1} << i) - 1; }

// Returns the lowest k set bits of `bits`, k > 0.
uint64_t first_set(uint64_t bits, int64_t k) {
  uint64_t rest = bits;
  for (int64_t i = 0; i < k; ++i) rest &= rest - 1;
  return bits & ~rest;
}

// Appends the positions of the set bits, offset by `at`, to `ends`, and the positions that follow
// them to `begins`. Writes in groups of eight, so up to 64 entries in total may be written even if
// fewer bits are set.
void append_positions(uint64_t bits, uint32_t at, uint32_t* ends, uint32_t* begins) {
  for (int left = std::popcount(bits); left > 0; left -= 8) {
    for (int i = 0; i < 8; ++i, bits &= bits - 1) {
      const uint32_t position = at + static_cast<uint32_t>(std::countr_zero(bits));
      *ends++ = position;
      *begins++ = position + 1;
    }
  }
}

}  // namespace

std::string CsvPlace::of_row(int64_t row) const {
  return absl::StrCat(caller, ": file '", file, "', ",
                      row <= 0 ? "header" : absl::StrCat("row ", row));
}

std::string CsvField::unescaped() const {
  if (!doubled) return std::string(begin, end);
  std::string out;
  for (const char* p = begin; p < end; ++p) {
    out += *p;
    if (*p == '"') ++p;
  }
  return out;
}

CsvSplitter::CsvSplitter(const CsvPlace& place, const CsvDialect& dialect)
    : place_(place), dialect_(dialect) {
  const char delimiter = dialect.delimiter;
  if (dialect.max_quoted_lines < 1) {
    throw ValueError(place.caller, ": max_quoted_lines must be at least 1, received ",
                     dialect.max_quoted_lines);
  }
  if (delimiter == '"' || delimiter == '\n' || delimiter == '\r') {
    throw ValueError(place.caller, ": the delimiter must not be a quote or a line break");
  }
  stops_[static_cast<unsigned char>(delimiter)] = true;
  stops_[static_cast<unsigned char>('\n')] = true;
}

// Returns a mask of the quotes that begin or end fields in the 64 bytes at p.
uint64_t CsvSplitter::quotes_in(const char* p) const {
  return dialect_.quoting ? bits_of(p, '"') : 0;
}

// Splits the record at p, which must not be empty, and moves p past it.
template <class OnField>
CsvSplitter::Found CsvSplitter::scan(const char*& p, const CsvText& text, Stop& stop,
                                     OnField&& on_field) const {
  const char* const end = text.end;
  const char* at = p;
  while (true) {
    CsvField field = {.begin = at};
    if (*at != '"' || at == end || !dialect_.quoting) {
      while (!stops_[static_cast<unsigned char>(*at)]) ++at;
      field.end = at;
      const bool ends_record = at == end || *at == '\n';
      if (ends_record && field.end > field.begin && field.end[-1] == '\r') --field.end;
    } else {
      ++field.begin;
      stop.field = at++;
      int64_t lines = 1;
      while (true) {
        const char* const from = at;
        at = static_cast<const char*>(std::memchr(at, '"', static_cast<size_t>(end - at)));
        lines += std::count(from, at == nullptr ? end : at, '\n');
        if (lines > dialect_.max_quoted_lines) return Found::kLongQuote;
        if (at == nullptr || at + 1 == end) {
          if (!text.last) return Found::kCutOff;
          if (at == nullptr) return Found::kOpenQuote;
        }
        if (at[1] != '"') break;
        field.doubled = true;
        at += 2;
      }
      field.end = at++;
      if (*at == '\r' && at < end) {
        if (at + 1 == end && !text.last) return Found::kCutOff;
        if (at[1] == '\n') ++at;
      }
      stop.at = at;
      if (at != end && !stops_[static_cast<unsigned char>(*at)]) return Found::kTextAfterQuote;
    }
    if (at == end && !text.last) return Found::kCutOff;
    on_field(field);
    if (at == end || *at == '\n') break;
    ++at;
  }
  p = at + (at < end ? 1 : 0);
  return Found::kRecord;
}

void CsvSplitter::fail(int64_t row, const CsvText& text, Found found, const Stop& stop) const {
  constexpr int64_t kShown = 40;
  const auto shown = [&](const char* from, const char* to) {
    return std::string(from, std::min(from + kShown, to));
  };
  const int64_t line = place_.line_of ? place_.line_of(stop.field) : 0;
  const std::string on_line = line > 0 ? absl::StrCat(" that begins on line ", line) : "";
  if (found == Found::kLongQuote) {
    throw IoError(place_.of_row(row), ": a quoted field", on_line, " spans more than ",
                  dialect_.max_quoted_lines, " lines: '", shown(stop.field + 1, text.end),
                  "'; set quoting to false if quotes are data, or raise max_quoted_lines");
  }
  if (found == Found::kOpenQuote) {
    throw IoError(place_.of_row(row), ": a quote", on_line, " is not closed: '",
                  shown(stop.field + 1, text.end),
                  "'; close it, double each quote within a field, or set quoting to false");
  }
  throw IoError(place_.of_row(row), ": a closing quote must end its field, received '",
                shown(stop.field, stop.at + 1), "'");
}

bool CsvSplitter::next(CsvText& text, int64_t row, std::vector<CsvField>& fields) const {
  text.begin = behind_empty_lines(text.begin, text.end);
  if (text.begin == text.end) return false;
  fields.clear();
  Stop stop;
  const Found found = scan(text.begin, text, stop, [&](const CsvField& f) { fields.push_back(f); });
  if (found != Found::kRecord && found != Found::kCutOff) fail(row, text, found, stop);
  return found == Found::kRecord;
}

void CsvSplitter::expect_fields(size_t count) {
  fields_ = count;
  most_records_ = std::clamp(static_cast<int64_t>(kFieldsAtOnce / count), int64_t{1}, kMostRecords);
  const size_t room = static_cast<size_t>(most_records_) * count + 2 * 64;
  begins_ = std::make_unique_for_overwrite<uint32_t[]>(room);
  ends_ = std::make_unique_for_overwrite<uint32_t[]>(room);
}

CsvField CsvSplitter::field(int64_t record, size_t i) const {
  const size_t j = static_cast<size_t>(record) * fields_ + i;
  return {.begin = base_ + begins_[j],
          .end = base_ + (ends_[j] & ~kDoubled),
          .doubled = (ends_[j] & kDoubled) != 0};
}

// Returns the number of records, out of `lines` with the given separators, that have the right
// number of fields, before the first one that does not.
int64_t CsvSplitter::regular_records(const uint32_t* ends, size_t separators, int64_t lines) const {
  if (separators >= static_cast<size_t>(lines) * fields_) {
    // The number of line breaks is `lines`. If there is one at every position where a record should
    // end, there are none anywhere else.
    bool regular = true;
    for (int64_t r = 1; r <= lines; ++r) {
      regular &= base_[ends[static_cast<size_t>(r) * fields_ - 1]] == '\n';
    }
    if (regular) return lines;
  }
  const int64_t whole = std::min(lines, static_cast<int64_t>(separators / fields_));
  for (int64_t r = 0; r < whole; ++r) {
    const uint32_t* const of_record = ends + static_cast<size_t>(r) * fields_;
    for (size_t i = 0; i < fields_; ++i) {
      if ((base_[of_record[i]] == '\n') != (i + 1 == fields_)) return r;
    }
  }
  return whole;
}

// Splits records until the first one that has a quote, is empty or has another number of fields.
// Returns their number.
int64_t CsvSplitter::split_plain(CsvText& text, int64_t done, int64_t most) {
  uint32_t* const begins = begins_.get() + static_cast<size_t>(done) * fields_;
  uint32_t* const ends = ends_.get() + static_cast<size_t>(done) * fields_;
  const size_t most_separators = static_cast<size_t>(most) * fields_;
  // If the last record of the file has no line break, the one stored after the text ends it.
  const char* const end = text.end + (text.last && text.end[-1] != '\n' ? 1 : 0);
  begins[0] = static_cast<uint32_t>(text.begin - base_);
  size_t separators = 0;
  int64_t lines = 0;
  bool stopped = false;
  for (const char* p = text.begin; p < end && !stopped; p += 64) {
    const uint64_t quotes = quotes_in(p);
    stopped = quotes != 0;
    uint64_t valid = below(std::min<int64_t>(end - p, std::countr_zero(quotes)));
    uint64_t breaks = bits_of(p, '\n') & valid;
    const int64_t count = std::popcount(breaks);
    if (lines + count >= most) {
      breaks = first_set(breaks, most - lines);
      valid &= below(64 - std::countl_zero(breaks));
      lines = most;
      stopped = true;
    } else {
      lines += count;
    }
    const uint64_t found = breaks | (bits_of(p, dialect_.delimiter) & valid);
    append_positions(found, static_cast<uint32_t>(p - base_), ends + separators,
                     begins + separators + 1);
    separators += static_cast<size_t>(std::popcount(found));
    stopped |= separators > most_separators;
  }
  int64_t records = regular_records(ends, separators, lines);
  for (int64_t r = 0; r < records; ++r) {
    const size_t last = static_cast<size_t>(r + 1) * fields_ - 1;
    const bool carriage_return = ends[last] > begins[last] && base_[ends[last] - 1] == '\r';
    const uint32_t size = ends[last] - begins[last] - (carriage_return ? 1 : 0);
    if (fields_ == 1 && size == 0) records = r;
    if (r < records) text.begin = std::min(base_ + ends[last] + 1, text.end);
    ends[last] -= carriage_return ? 1 : 0;
  }
  return records;
}

int64_t CsvSplitter::split(CsvText& text, int64_t row, int64_t most) {
  base_ = text.begin;
  most = std::min(most, most_records_);
  int64_t done = 0;
  while (true) {
    text.begin = behind_empty_lines(text.begin, text.end);
    if (done == most || text.begin == text.end) return done;
    done += split_plain(text, done, most - done);
    if (done == most || text.begin == text.end) return done;
    const char* p = behind_empty_lines(text.begin, text.end);
    if (p == text.end) continue;
    size_t count = 0, j = static_cast<size_t>(done) * fields_;
    Stop stop;
    const Found found = scan(p, text, stop, [&](const CsvField& field) {
      if (++count > fields_) return;
      begins_[j] = static_cast<uint32_t>(field.begin - base_);
      ends_[j++] = static_cast<uint32_t>(field.end - base_) | (field.doubled ? kDoubled : 0);
    });
    if (found == Found::kCutOff) return done;
    if (found == Found::kRecord && count == fields_) {
      text.begin = p;
      ++done;
    } else if (done > 0) {
      return done;  // the next call throws for the malformed record
    } else if (found == Found::kRecord) {
      throw IoError(place_.of_row(row), ": expected ", fields_,
                    " fields, one for each column, received ", count);
    } else {
      fail(row, text, found, stop);
    }
  }
}

int64_t CsvSplitter::skip(CsvText& text, int64_t most) const {
  int64_t done = 0;
  while (done < most) {
    text.begin = behind_empty_lines(text.begin, text.end);
    // Counts non-empty lines without quotes.
    uint64_t before = uint64_t{1} << 63;  // mask of line breaks in the previous 64 bytes
    uint64_t returns_before = 0;
    bool stopped = false;
    for (const char* p = text.begin; p < text.end && done < most && !stopped; p += 64) {
      const uint64_t quotes = quotes_in(p);
      stopped = quotes != 0;
      const uint64_t valid = below(std::min<int64_t>(text.end - p, std::countr_zero(quotes)));
      const uint64_t returns = bits_of(p, '\r');
      uint64_t breaks = bits_of(p, '\n') & valid;
      // A line break ends an empty line if it follows a line break directly or with a carriage
      // return between them.
      const uint64_t empty = (breaks << 1 | before >> 63) |
                             ((returns << 1 | returns_before >> 63) & (breaks << 2 | before >> 62));
      before = breaks;
      returns_before = returns;
      if (std::popcount(breaks & ~empty) > most - done) {
        breaks = first_set(breaks & ~empty, most - done);
      }
      done += std::popcount(breaks & ~empty);
      if (breaks != 0) text.begin = p + 64 - std::countl_zero(breaks);
    }
    if (done == most) return done;
    const char* p = text.begin = behind_empty_lines(text.begin, text.end);
    if (p == text.end) return done;
    Stop stop;
    const Found found = scan(p, text, stop, [](const CsvField&) {});
    if (found == Found::kCutOff) return done;
    text.begin = found == Found::kRecord ? p : text.end;
    ++done;
  }
  return done;
}

}  // namespace keel::data
