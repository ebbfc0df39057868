#include <keel/savedmodel/serving/http/request_parser.h>

#include <algorithm>
#include <charconv>

namespace keel::serving {
namespace {

bool is_token_char(char c) {
  constexpr std::string_view kOthers = "!#$%&'*+-.^_`|~";
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kOthers.find(c) != std::string_view::npos;
}

bool equals_ignoring_case(std::string_view a, std::string_view lower) {
  return a.size() == lower.size() &&
         std::equal(a.begin(), a.end(), lower.begin(), [](char x, char y) {
           return (x >= 'A' && x <= 'Z' ? static_cast<char>(x | 0x20) : x) == y;
         });
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool has_control(std::string_view text) {
  return std::ranges::any_of(text, [](char c) {
    return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F;
  });
}

HttpMethod method_of(std::string_view text) {
  if (text == "GET") return HttpMethod::kGet;
  if (text == "POST") return HttpMethod::kPost;
  if (text == "HEAD") return HttpMethod::kHead;
  if (text == "OPTIONS") return HttpMethod::kOptions;
  return HttpMethod::kOther;
}

}  // namespace

void RequestParser::reset() {
  std::string body = std::move(body_);
  const HttpLimits limits = limits_;
  *this = RequestParser(limits);
  constexpr size_t kKept = 4096;
  if (body.capacity() <= kKept) {
    body.clear();
    body_ = std::move(body);
  }
}

RequestParser::State RequestParser::fail(int status, const char* text) {
  error_status_ = status;
  error_text_ = text;
  return state_ = State::kFailed;
}

RequestParser::State RequestParser::parse(std::string_view bytes) {
  if (state_ == State::kHeaders) {
    while (bytes.substr(start_).starts_with("\r\n")) start_ += 2;
    scanned_ = std::max(scanned_, start_);
    if (bytes.size() > start_ && bytes[start_] != '\r' && !is_token_char(bytes[start_])) {
      return fail(400, "this is not HTTP");
    }
    // The end may begin in bytes that were scanned before.
    const size_t from = scanned_ >= start_ + 3 ? scanned_ - 3 : start_;
    const size_t end = bytes.find("\r\n\r\n", from);
    if (end == std::string_view::npos) {
      scanned_ = bytes.size();
      if (bytes.size() > limits_.header_bytes) return fail(431, "the headers are too large");
      return state_;
    }
    if (end + 4 > limits_.header_bytes) return fail(431, "the headers are too large");
    head_end_ = end + 4;
    if (!parse_head(bytes.substr(0, end + 2)) || !check_framing()) return state_;
    state_ = State::kBody;
    chunk_at_ = head_end_;
  }
  if (state_ != State::kBody) return state_;
  if (chunked_) return parse_chunks(bytes);
  if (bytes.size() - head_end_ < length_) return state_;
  consumed_ = head_end_ + static_cast<size_t>(length_);
  return state_ = State::kComplete;
}

bool RequestParser::parse_head(std::string_view bytes) {
  size_t begin = start_;
  int lines = 0;
  while (begin < bytes.size()) {
    const size_t end = bytes.find("\r\n", begin);
    const bool parsed =
        lines == 0 ? parse_request_line(bytes, begin, end) : parse_header(bytes, begin, end);
    if (!parsed) return false;
    begin = end + 2;
    if (++lines > limits_.headers + 1) {
      fail(431, "there are too many headers");
      return false;
    }
  }
  return true;
}

bool RequestParser::parse_request_line(std::string_view bytes, size_t begin, size_t end) {
  const std::string_view line = bytes.substr(begin, end - begin);
  const size_t first = line.find(' '), last = line.rfind(' ');
  const auto malformed = [&] {
    fail(400, "malformed request line");
    return false;
  };
  if (first == std::string_view::npos || last == first || has_control(line)) return malformed();
  const std::string_view method = line.substr(0, first);
  std::string_view target = line.substr(first + 1, last - first - 1);
  const std::string_view version = line.substr(last + 1);
  if (!std::ranges::all_of(method, is_token_char) || target.empty() ||
      target.find(' ') != std::string_view::npos) {
    return malformed();
  }
  if (version.size() != 8 || !version.starts_with("HTTP/") || version[6] != '.') return malformed();
  if (version[5] != '1' || version[7] < '0' || version[7] > '9') {
    fail(505, "only HTTP/1.0 and HTTP/1.1 are supported");
    return false;
  }
  minor_version_ = version[7] == '0' ? 0 : 1;
  method_ = method_of(method);
  method_text_ = {begin, method.size()};
  if (target[0] != '/' && target != "*") {  // absolute form: http://host/path
    const size_t scheme = target.find("://");
    if (scheme == std::string_view::npos) return malformed();
    const std::string_view name = target.substr(0, scheme);
    if (!equals_ignoring_case(name, "http") && !equals_ignoring_case(name, "https")) {
      return malformed();
    }
    target.remove_prefix(scheme + 3);
    const size_t slash = target.find_first_of("/?");
    target = slash == std::string_view::npos ? target.substr(target.size()) : target.substr(slash);
  }
  target = target.substr(0, target.find_first_of("?#"));
  path_ = {static_cast<size_t>(target.data() - bytes.data()), target.size()};
  return true;
}

bool RequestParser::parse_header(std::string_view bytes, size_t begin, size_t end) {
  const std::string_view line = bytes.substr(begin, end - begin);
  const size_t colon = line.find(':');
  const auto malformed = [&] {
    fail(400, "malformed header");
    return false;
  };
  if (colon == std::string_view::npos || colon == 0) return malformed();
  const std::string_view name = line.substr(0, colon), value = trimmed(line.substr(colon + 1));
  if (!std::ranges::all_of(name, is_token_char) || has_control(value)) return malformed();
  const Span span = {static_cast<size_t>(value.data() - bytes.data()), value.size()};
  const auto is = [&](std::string_view lower) { return equals_ignoring_case(name, lower); };
  switch (name.size()) {
    case 4:
      if (is("host")) ++hosts_;
      break;
    case 6:
      if (is("origin")) origin_ = span;
      if (is("accept")) accept_ = span;
      if (is("expect")) {
        if (!equals_ignoring_case(value, "100-continue")) {
          fail(417, "only the expectation 100-continue is supported");
          return false;
        }
        expects_ = true;
      }
      break;
    case 10:
      if (is("connection")) {
        for (size_t at = 0; at <= value.size();) {
          const size_t comma = std::min(value.find(',', at), value.size());
          const std::string_view option = trimmed(value.substr(at, comma - at));
          close_ = close_ || equals_ignoring_case(option, "close");
          keep_alive_ = keep_alive_ || equals_ignoring_case(option, "keep-alive");
          at = comma + 1;
        }
      }
      break;
    case 14:
      if (is("content-length")) {
        const char* const last = value.data() + value.size();
        const bool digits = !value.empty() &&
                            std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
        if (has_length_ || !digits) {
          fail(400, "malformed Content-Length");
          return false;
        }
        has_length_ = true;
        if (std::from_chars(value.data(), last, length_).ec != std::errc()) length_ = UINT64_MAX;
      }
      break;
    case 16:
      if (is("content-encoding")) encoding_ = span;
      break;
    case 17:
      if (is("transfer-encoding")) {
        if (has_transfer_encoding_ || !equals_ignoring_case(value, "chunked")) {
          fail(400, "the only supported Transfer-Encoding is chunked");
          return false;
        }
        has_transfer_encoding_ = true;
      }
      break;
    case 31:
      if (is("inference-header-content-length")) {
        has_header_length_ = true;
        header_length_ = span;
      }
      break;
    default:
      break;
  }
  return true;
}

bool RequestParser::check_framing() {
  if (has_transfer_encoding_ && has_length_) {
    fail(400, "a request must not have both Transfer-Encoding and Content-Length");
    return false;
  }
  if (has_transfer_encoding_ && minor_version_ == 0) {
    fail(400, "HTTP/1.0 has no Transfer-Encoding");
    return false;
  }
  if (hosts_ > 1 || (hosts_ == 0 && minor_version_ > 0)) {
    fail(400, "a request must have one Host header");
    return false;
  }
  if (length_ > limits_.body_bytes) {
    fail(413, "the body is too large");
    return false;
  }
  chunked_ = has_transfer_encoding_;
  return true;
}

bool RequestParser::parse_chunk_size(std::string_view line) {
  const std::string_view digits = trimmed(line.substr(0, line.find(';')));
  constexpr size_t kMostDigits = 15;
  if (digits.empty() || digits.size() > kMostDigits || has_control(line)) return false;
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), chunk_left_, 16);
  return error == std::errc() && end == digits.data() + digits.size();
}

RequestParser::State RequestParser::parse_chunks(std::string_view bytes) {
  constexpr size_t kLongestLine = 1024;
  while (true) {
    if (chunk_state_ == ChunkState::kData) {
      const size_t count = std::min(bytes.size() - chunk_at_, static_cast<size_t>(chunk_left_));
      body_.append(bytes.substr(chunk_at_, count));
      chunk_at_ += count;
      chunk_left_ -= count;
      if (chunk_left_ > 0) return state_;
      chunk_state_ = ChunkState::kDataEnd;
    }
    if (chunk_state_ == ChunkState::kDataEnd) {
      const std::string_view rest = bytes.substr(chunk_at_, 2);
      if (!std::string_view("\r\n").starts_with(rest)) return fail(400, "malformed chunk");
      if (rest.size() < 2) return state_;
      chunk_at_ += 2;
      chunk_state_ = ChunkState::kSize;
    }
    const size_t end = bytes.find("\r\n", chunk_at_);
    const size_t length = std::min(end, bytes.size()) - chunk_at_;
    if (length > kLongestLine) return fail(400, "malformed chunk");
    if (end == std::string_view::npos) return state_;
    const std::string_view line = bytes.substr(chunk_at_, length);
    chunk_at_ = end + 2;
    if (chunk_state_ == ChunkState::kTrailer) {
      trailer_bytes_ += line.size() + 2;
      if (trailer_bytes_ > limits_.header_bytes) return fail(431, "the trailers are too large");
      if (!line.empty()) continue;
      consumed_ = chunk_at_;
      return state_ = State::kComplete;
    }
    if (!parse_chunk_size(line)) return fail(400, "malformed chunk size");
    if (chunk_left_ > limits_.body_bytes - body_.size()) return fail(413, "the body is too large");
    chunk_state_ = chunk_left_ == 0 ? ChunkState::kTrailer : ChunkState::kData;
  }
}

void RequestParser::drop_read_chunks(std::string& bytes) {
  constexpr size_t kLeast = 16384;
  if (state_ != State::kBody || !chunked_ || chunk_at_ < head_end_ + kLeast) return;
  bytes.erase(head_end_, chunk_at_ - head_end_);
  chunk_at_ = head_end_;
}

HttpRequest RequestParser::request(std::string_view bytes) const {
  HttpRequest out;
  out.method = method_;
  out.method_text = method_text_.in(bytes);
  out.path = path_.in(bytes);
  out.minor_version = minor_version_;
  out.keep_alive = !close_ && (minor_version_ > 0 || keep_alive_);
  out.content_encoding = encoding_.in(bytes);
  out.origin = origin_.in(bytes);
  out.accept = accept_.in(bytes);
  out.has_header_length = has_header_length_;
  out.header_length = header_length_.in(bytes);
  out.body =
      chunked_ ? std::string_view(body_) : bytes.substr(head_end_, static_cast<size_t>(length_));
  return out;
}

bool RequestParser::take_expectation() {
  const bool out = expects_ && minor_version_ > 0 && state_ == State::kBody;
  expects_ = false;
  return out;
}

}  // namespace keel::serving
