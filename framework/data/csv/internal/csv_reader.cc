#include <keel/framework/data/csv/internal/csv_reader.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <string_view>
#include <system_error>

#include <keel/framework/base/errors.h>

namespace keel::data {
namespace {

// This much text stays in a core's cache between reading and parsing, and is enough for many blocks
// of rows.
constexpr size_t kBufferBytes = size_t{1} << 19;
constexpr size_t kMaxRecordBytes = size_t{64} << 20;
constexpr size_t kBehindText = 1 + kCsvPadding;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

CsvReader::CsvReader(const std::filesystem::path& file, const CsvDialect& dialect,
                     std::string caller)
    : place_{.file = file.string(),
             .caller = std::move(caller),
             .line_of = [this](const char* position) { return line_of(position); }},
      dialect_(dialect) {
  file_.reset(std::fopen(place_.file.c_str(), "rb"));
  if (file_ == nullptr) {
    throw IoError(place_.caller, ": cannot open '", place_.file, "': ", reason());
  }
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
  // For a small file the buffer holds the file and one more byte, which lets fread() detect the
  // end.
  std::error_code unknown;
  const uintmax_t bytes = std::filesystem::file_size(file, unknown);
  buffer_.resize((unknown ? kBufferBytes : std::min<uintmax_t>(bytes + 1, kBufferBytes)) +
                 kBehindText);
  refill();
  if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark)) {
    begin_ = kByteOrderMark.size();
  }
}

std::vector<std::string> CsvReader::header() {
  const CsvSplitter splitter(place_, dialect_);
  std::vector<CsvField> fields;
  CsvText rest = text();
  while (!splitter.next(rest, row_, fields)) {
    if (rest.last) {
      throw IoError(place_.of_row(row_),
                    ": the file is empty; a header with the column names is required");
    }
    take(rest.begin, 0);
    refill();
    rest = text();
  }
  std::vector<std::string> names;
  for (const CsvField& field : fields) names.push_back(field.unescaped());
  take(rest.begin, 1);
  return names;
}

CsvText CsvReader::text() const {
  return {.begin = buffer_.data() + begin_, .end = buffer_.data() + end_, .last = file_ended_};
}

void CsvReader::take(const char* end, int64_t records) {
  begin_ = static_cast<size_t>(end - buffer_.data());
  row_ += records;
}

// Lines are only counted for errors, by reading the file again. A pipe cannot be read again.
int64_t CsvReader::line_of(const char* position) const {
  uint64_t left = offset_ + static_cast<uint64_t>(position - buffer_.data());
  std::error_code error;
  if (!std::filesystem::is_regular_file(place_.file, error)) return 0;
  std::ifstream in(place_.file, std::ios::binary);
  std::vector<char> piece(kBufferBytes);
  int64_t line = 1;
  while (left > 0) {
    const auto size = static_cast<std::streamsize>(std::min<uint64_t>(left, piece.size()));
    if (!in.read(piece.data(), size)) return 0;
    line += std::count(piece.data(), piece.data() + size, '\n');
    left -= static_cast<uint64_t>(size);
  }
  return line;
}

void CsvReader::refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  offset_ += begin_;
  begin_ = 0;
  if (end_ + kBehindText == buffer_.size()) {
    if (end_ >= kMaxRecordBytes) {
      throw IoError(place_.of_row(row_), ": the record is longer than ", kMaxRecordBytes,
                    " bytes; check for a quote that is not closed");
    }
    buffer_.resize(2 * end_ + kBehindText);
  }
  const size_t room = buffer_.size() - kBehindText - end_;
  const size_t received = std::fread(buffer_.data() + end_, 1, room, file_.get());
  if (received < room) {
    if (std::ferror(file_.get()) != 0) {
      throw IoError(place_.caller, ": cannot read '", place_.file, "': ", reason());
    }
    file_ended_ = true;
  }
  end_ += received;
  buffer_[end_] = '\n';
}

}  // namespace keel::data
