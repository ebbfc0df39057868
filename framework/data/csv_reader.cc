#include "framework/data/csv_reader.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>

#include "framework/errors.h"

namespace keel::data {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;
constexpr size_t kMaxRecordBytes = size_t{64} << 20;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string reason() { return std::generic_category().message(errno); }

}  // namespace

std::string CsvReader::Field::unescaped() const {
  if (!doubled) return std::string(begin, end);
  std::string out;
  for (const char* p = begin; p < end; ++p) {
    out += *p;
    if (*p == '"') ++p;
  }
  return out;
}

CsvReader::CsvReader(const std::filesystem::path& file, char delimiter, std::string who)
    : name_(file.string()), who_(std::move(who)) {
  if (delimiter == '"' || delimiter == '\n' || delimiter == '\r') {
    throw ValueError(who_, ": needs a delimiter that is no quote or line break");
  }
  file_.reset(std::fopen(name_.c_str(), "rb"));
  if (file_ == nullptr) throw IoError(who_, ": cannot open '", name_, "': ", reason());
  std::setvbuf(file_.get(), nullptr, _IONBF, 0);
  stops_[static_cast<unsigned char>(delimiter)] = true;
  stops_[static_cast<unsigned char>('\n')] = true;
  // A small file needs no more than itself and room to see that it ends.
  std::error_code unknown;
  const uintmax_t bytes = std::filesystem::file_size(file, unknown);
  buffer_.resize(unknown ? kBufferBytes + 1 : std::min<uintmax_t>(bytes + 1, kBufferBytes) + 1);
  refill();
  if (std::string_view(buffer_.data(), end_).starts_with(kByteOrderMark)) {
    begin_ = kByteOrderMark.size();
  }
}

std::string CsvReader::place() const {
  return str(who_, ": file '", name_, "', ", row() <= 0 ? "header" : str("row ", row()));
}

bool CsvReader::next() {
  while (true) {
    while (begin_ < end_ && buffer_[begin_] == '\n') ++begin_;
    const bool empty_line =
        begin_ + 1 < end_ && buffer_[begin_] == '\r' && buffer_[begin_ + 1] == '\n';
    if (empty_line) {
      begin_ += 2;
      continue;
    }
    if (begin_ == end_ && file_ended_) return false;
    if (begin_ < end_) {
      ++records_;
      if (split()) return true;
      --records_;
    }
    refill();
  }
}

// False if the data end before the record does, and the file goes on.
bool CsvReader::split() {
  const char* const end = buffer_.data() + end_;
  const char* p = buffer_.data() + begin_;
  fields_.clear();
  while (true) {
    const char* const begin = p;
    if (*p == '"') {
      p = split_quoted(p, end);
      if (p == nullptr) return false;
    } else {
      while (!stops_[static_cast<unsigned char>(*p)]) ++p;
      fields_.push_back({begin, p});
    }
    if (p == end && !file_ended_) return false;
    if (p == end || *p == '\n') break;
    ++p;
  }
  Field& last = fields_.back();
  if (last.end == p && last.end > last.begin && last.end[-1] == '\r') --last.end;
  begin_ = static_cast<size_t>(p - buffer_.data()) + (p < end ? 1 : 0);
  return true;
}

// Adds the field whose opening quote is at p. Returns the character after the field, or null as
// split() returns false.
const char* CsvReader::split_quoted(const char* p, const char* end) {
  Field field = {.begin = p + 1};
  for (++p;; p += 2) {
    p = static_cast<const char*>(std::memchr(p, '"', static_cast<size_t>(end - p)));
    if (p == nullptr || (p + 1 == end && !file_ended_)) {
      if (!file_ended_) return nullptr;
      throw IoError(place(), ": a quote is not closed: '",
                    std::string(field.begin, std::min<size_t>(40, end - field.begin)), "'");
    }
    if (p[1] != '"') break;
    field.doubled = true;
  }
  field.end = p++;
  fields_.push_back(field);
  if (*p == '\r' && p < end) {
    if (p + 1 == end && !file_ended_) return nullptr;
    if (p[1] == '\n') ++p;
  }
  if (p == end || stops_[static_cast<unsigned char>(*p)]) return p;
  throw IoError(place(), ": a closing quote must end its field, received '",
                std::string(field.begin - 1, std::min<size_t>(40, p + 1 - field.begin + 1)), "'");
}

// Moves the current record to the front and reads as much as there is room for.
void CsvReader::refill() {
  std::memmove(buffer_.data(), buffer_.data() + begin_, end_ - begin_);
  end_ -= begin_;
  begin_ = 0;
  if (end_ + 1 == buffer_.size()) {
    if (end_ >= kMaxRecordBytes) {
      ++records_;
      throw IoError(place(), ": longer than ", kMaxRecordBytes, " bytes (is a quote not closed?)");
    }
    buffer_.resize(2 * end_ + 1);
  }
  const size_t room = buffer_.size() - 1 - end_;
  const size_t received = std::fread(buffer_.data() + end_, 1, room, file_.get());
  if (received < room) {
    if (std::ferror(file_.get()) != 0) {
      throw IoError(who_, ": cannot read '", name_, "': ", reason());
    }
    file_ended_ = true;
  }
  end_ += received;
  buffer_[end_] = '\n';
}

}  // namespace keel::data
