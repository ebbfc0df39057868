#include <keel/savedmodel/serving/base/json_reader.h>

#include <bit>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <limits>

#include <keel/savedmodel/serving/base/utf8.h>

namespace keel::serving {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }

std::string shortened(std::string_view text) {
  constexpr size_t kShown = 40;
  return text.size() <= kShown ? std::string(text) : std::string(text.substr(0, kShown)) + "...";
}

// Returns true if the decimal number `text`, which is out of the range of its type, is too large
// rather than too small.
bool is_too_large(std::string_view text) {
  size_t i = text[0] == '-' ? 1 : 0;
  int64_t digits = 0;  // before the point, without leading zeros; negative: zeros after the point
  bool nonzero = false;
  for (; i < text.size() && is_digit(text[i]); ++i) {
    nonzero = nonzero || text[i] != '0';
    digits += nonzero ? 1 : 0;
  }
  if (i < text.size() && text[i] == '.') {
    for (++i; i < text.size() && is_digit(text[i]); ++i) {
      if (nonzero) continue;
      if (text[i] == '0') {
        --digits;
      } else {
        nonzero = true;
      }
    }
  }
  int64_t exponent = 0;
  if (i < text.size()) {
    ++i;
    const bool negative = text[i] == '-';
    if (text[i] == '-' || text[i] == '+') ++i;
    constexpr int64_t kLarge = int64_t{1} << 40;
    for (; i < text.size(); ++i) exponent = std::min(exponent * 10 + (text[i] - '0'), kLarge);
    if (negative) exponent = -exponent;
  }
  return digits + exponent > 0;
}

template <class T>
T special_number(std::string_view text) {
  if (text == "NaN") return std::numeric_limits<T>::quiet_NaN();
  return text[0] == '-' ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::infinity();
}

// The powers of ten that a double holds exactly.
constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                              1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                              1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

// Rounds a double, which may differ from the exact value by half a unit in its last place, to a
// float. Returns false if that could round another way than the exact value.
bool round_to(double value, float& to) {
  constexpr double kLeastNormal = 1.2e-38, kMost = 3e38;
  constexpr uint64_t kDropped = (uint64_t{1} << 29) - 1, kHalf = uint64_t{1} << 28;
  if (!(value > kLeastNormal && value < kMost)) return false;
  const uint64_t dropped = std::bit_cast<uint64_t>(value) & kDropped;
  if (dropped + 1 >= kHalf && dropped <= kHalf + 1) return false;
  to = static_cast<float>(value);
  return true;
}
bool round_to(double value, double& to) {
  to = value;
  return true;
}

// Reads a decimal number of at most 15 digits without an exponent, whose value is a division of two
// exact doubles (Clinger 1990). Returns its end, or null if it has another form.
template <class T>
const char* read_short_decimal(const char* p, const char* end, T& value) {
  constexpr int kMostDigits = 15;
  const bool negative = p != end && *p == '-';
  if (negative) ++p;
  if (p == end || !is_digit(*p) || (*p == '0' && end - p > 1 && is_digit(p[1]))) return nullptr;
  uint64_t digits = 0;
  int count = 0, decimals = 0;
  for (; p != end && is_digit(*p); ++p, ++count) {
    if (count == kMostDigits) return nullptr;
    digits = digits * 10 + static_cast<uint64_t>(*p - '0');
  }
  if (p != end && *p == '.') {
    const char* const point = p;
    for (++p; p != end && is_digit(*p); ++p, ++count) {
      if (count == kMostDigits) return nullptr;
      digits = digits * 10 + static_cast<uint64_t>(*p - '0');
    }
    decimals = static_cast<int>(p - point) - 1;
    if (decimals == 0) return nullptr;
  }
  if (p == end || (*p | 0x20) == 'e' || digits == 0) return nullptr;
  T size = 0;
  if (!round_to(static_cast<double>(digits) / kPowers[decimals], size)) return nullptr;
  value = negative ? -size : size;
  return p;
}

constexpr std::string_view kSpecialNumbers[] = {"NaN", "Infinity", "-Infinity", "Inf", "-Inf"};

}  // namespace

const char* name_of(JsonKind kind) {
  switch (kind) {
    case JsonKind::kObject:
      return "an object";
    case JsonKind::kArray:
      return "a list";
    case JsonKind::kString:
      return "a string";
    case JsonKind::kNumber:
      return "a number";
    case JsonKind::kBool:
      return "a boolean";
    case JsonKind::kNull:
      return "null";
  }
  return "a value";
}

JsonReader::JsonReader(std::string_view text)
    : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {
  if (text.starts_with("\xEF\xBB\xBF")) at_ += 3;
}

void JsonReader::fail(const char* problem) const {
  throw ServeError(Code::kInvalidArgument, "JSON Parse error: ", problem, " at offset ", offset());
}

JsonKind JsonReader::kind() {
  skip_space();
  if (at_ == end_) fail(begin_ == end_ ? "The document is empty" : "unexpected end of the text");
  switch (*at_) {
    case '{':
      return JsonKind::kObject;
    case '[':
      return JsonKind::kArray;
    case '"':
      return JsonKind::kString;
    case 't':
    case 'f':
      return JsonKind::kBool;
    case 'n':
      return JsonKind::kNull;
    case 'N':
    case 'I':
    case '-':
      return JsonKind::kNumber;
    default:
      if (is_digit(*at_)) return JsonKind::kNumber;
      fail("invalid value");
  }
}

void JsonReader::fail_kind(const char* needed) {
  const JsonKind found = kind();
  if (found == JsonKind::kNumber) {
    throw ValueFault("must be ", needed, ", received ", shortened(read_number_text()));
  }
  // Text that is not JSON is a parse error, whatever it was expected to be.
  skip_value();
  throw ValueFault("must be ", needed, ", received ", name_of(found));
}

void JsonReader::enter(char open, JsonKind needed) {
  skip_space();
  if (at_ == end_ || *at_ != open) fail_kind(name_of(needed));
  if (depth_ == kMaxDepth) fail("nesting is deeper than 64 levels");
  ++at_;
  first_[++depth_] = true;
}

void JsonReader::enter_object() { enter('{', JsonKind::kObject); }
void JsonReader::enter_array() { enter('[', JsonKind::kArray); }

bool JsonReader::next_key(std::string& key) {
  skip_space();
  if (at_ == end_) fail("unexpected end of an object");
  if (*at_ == '}') {
    ++at_;
    --depth_;
    return false;
  }
  if (!first_[depth_]) {
    if (*at_ != ',') fail("expected ',' or '}'");
    ++at_;
    skip_space();
  }
  first_[depth_] = false;
  if (at_ == end_ || *at_ != '"') fail("expected the name of a member");
  read_string(key);
  skip_space();
  if (at_ == end_ || *at_ != ':') fail("expected ':'");
  ++at_;
  return true;
}

bool JsonReader::first_element() {
  skip_space();
  if (at_ == end_) fail("unexpected end of a list");
  first_[depth_] = false;
  if (*at_ != ']') return true;
  ++at_;
  --depth_;
  return false;
}

bool JsonReader::following_element() {
  skip_space();
  if (at_ == end_) fail("unexpected end of a list");
  if (*at_ == ',') {
    ++at_;
    skip_space();
    if (at_ != end_ && *at_ == ']') fail("expected a value");
    return true;
  }
  if (*at_ != ']') fail("expected ',' or ']'");
  ++at_;
  --depth_;
  return false;
}

const char* JsonReader::number_end() {
  const char* p = at_;
  if (p != end_ && *p == '-') ++p;
  if (p == end_ || !is_digit(*p)) {
    for (std::string_view token : kSpecialNumbers) {
      const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
      if (!rest.starts_with(token)) continue;
      const char* const after = at_ + token.size();
      const bool longer = after != end_ && ((*after >= 'a' && *after <= 'z') ||
                                            (*after >= 'A' && *after <= 'Z') || is_digit(*after));
      if (!longer) return after;
    }
    fail("invalid number");
  }
  if (*p == '0') {
    ++p;
    if (p != end_ && is_digit(*p)) fail("a number has a leading zero");
  } else {
    while (p != end_ && is_digit(*p)) ++p;
  }
  if (p != end_ && *p == '.') {
    ++p;
    if (p == end_ || !is_digit(*p)) fail("a number has no digits after its point");
    while (p != end_ && is_digit(*p)) ++p;
  }
  if (p != end_ && (*p == 'e' || *p == 'E')) {
    ++p;
    if (p != end_ && (*p == '+' || *p == '-')) ++p;
    if (p == end_ || !is_digit(*p)) fail("a number has no digits in its exponent");
    while (p != end_ && is_digit(*p)) ++p;
  }
  return p;
}

std::string_view JsonReader::read_number_text() {
  if (kind() != JsonKind::kNumber) fail_kind("a number");
  // More digits than the exact value of any double has.
  constexpr std::ptrdiff_t kLongest = 2048;
  const char* const begin = at_;
  const char* const end = number_end();
  if (end - begin > kLongest) fail("a number has too many digits");
  at_ = end;
  return {begin, static_cast<size_t>(end - begin)};
}

template <class T>
T JsonReader::read_float() {
  skip_space();
  T value = 0;
  if (const char* const end = read_short_decimal(at_, end_, value)) {
    at_ = end;
    return value;
  }
  const std::string_view text = read_number_text();
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  if (error == std::errc::result_out_of_range) {
    const T size = is_too_large(text) ? std::numeric_limits<T>::infinity() : T{0};
    return text[0] == '-' ? -size : size;
  }
  return special_number<T>(text);
}
template float JsonReader::read_float<float>();
template double JsonReader::read_float<double>();

template <class T>
T JsonReader::read_integer() {
  const std::string_view text = read_number_text();
  T value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc() && end == text.data() + text.size()) return value;
  const bool whole = text.find_first_not_of("-0123456789") == std::string_view::npos;
  if (!whole) throw ValueFault("must be an integer, received ", shortened(text));
  if (text == "-0") return 0;
  const char* const sign = std::is_signed_v<T> ? "int" : "uint";
  throw ValueFault(shortened(text), " is out of the range of ", sign, sizeof(T) * 8);
}
template int8_t JsonReader::read_integer<int8_t>();
template uint8_t JsonReader::read_integer<uint8_t>();
template int32_t JsonReader::read_integer<int32_t>();
template int64_t JsonReader::read_integer<int64_t>();

void JsonReader::expect_literal(std::string_view literal) {
  const std::string_view rest(at_, static_cast<size_t>(end_ - at_));
  if (!rest.starts_with(literal)) fail("invalid value");
  at_ += literal.size();
}

bool JsonReader::read_bool() {
  if (kind() != JsonKind::kBool) fail_kind("true or false");
  const bool value = *at_ == 't';
  expect_literal(value ? "true" : "false");
  return value;
}

bool JsonReader::next_member(std::string& key) {
  while (next_key(key)) {
    if (kind() != JsonKind::kNull) return true;
    read_null();
  }
  return false;
}

void JsonReader::read_null() {
  if (kind() != JsonKind::kNull) fail_kind("null");
  expect_literal("null");
}

uint32_t JsonReader::read_hex4() {
  if (end_ - at_ < 4) fail("invalid escape");
  uint32_t value = 0;
  const auto [end, error] = std::from_chars(at_, at_ + 4, value, 16);
  if (error != std::errc() || end != at_ + 4) fail("invalid escape");
  at_ += 4;
  return value;
}

void JsonReader::read_escape(std::string& out) {
  if (at_ == end_) fail("unexpected end of a string");
  switch (*at_++) {
    case '"':
      return out.push_back('"');
    case '\\':
      return out.push_back('\\');
    case '/':
      return out.push_back('/');
    case 'b':
      return out.push_back('\b');
    case 'f':
      return out.push_back('\f');
    case 'n':
      return out.push_back('\n');
    case 'r':
      return out.push_back('\r');
    case 't':
      return out.push_back('\t');
    case 'u':
      break;
    default:
      --at_;
      fail("invalid escape");
  }
  char32_t code_point = read_hex4();
  if (code_point >= 0xDC00 && code_point < 0xE000) fail("a surrogate without its pair");
  if (code_point >= 0xD800 && code_point < 0xDC00) {
    if (end_ - at_ < 2 || at_[0] != '\\' || at_[1] != 'u') fail("a surrogate without its pair");
    at_ += 2;
    const char32_t low = read_hex4();
    if (low < 0xDC00 || low >= 0xE000) fail("a surrogate without its pair");
    code_point = 0x10000 + ((code_point - 0xD800) << 10) + (low - 0xDC00);
  }
  append_utf8(out, code_point);
}

void JsonReader::read_string(std::string& out) {
  skip_space();
  if (at_ == end_ || *at_ != '"') fail_kind("a string");
  ++at_;
  out.clear();
  while (true) {
    const char* const run = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20 &&
           static_cast<unsigned char>(*at_) < 0x80) {
      ++at_;
    }
    out.append(run, static_cast<size_t>(at_ - run));
    if (at_ == end_) fail("unexpected end of a string");
    const auto c = static_cast<unsigned char>(*at_);
    if (c == '"') {
      ++at_;
      return;
    }
    if (c == '\\') {
      ++at_;
      read_escape(out);
    } else if (c < 0x20) {
      fail("a control character in a string");
    } else {
      const size_t length = utf8_length({at_, static_cast<size_t>(end_ - at_)}, 0);
      if (length == 0) fail("invalid UTF-8");
      out.append(at_, length);
      at_ += length;
    }
  }
}

void JsonReader::skip_value() {
  const int depth = depth_;
  std::array<bool, kMaxDepth + 1> is_object = {};
  std::string text;
  while (true) {
    switch (kind()) {
      case JsonKind::kObject:
        enter_object();
        is_object[depth_] = true;
        break;
      case JsonKind::kArray:
        enter_array();
        is_object[depth_] = false;
        break;
      case JsonKind::kString:
        read_string(text);
        break;
      case JsonKind::kNumber:
        at_ = number_end();
        break;
      case JsonKind::kBool:
        read_bool();
        break;
      case JsonKind::kNull:
        read_null();
        break;
    }
    while (depth_ > depth && !(is_object[depth_] ? next_key(text) : next_element())) {
    }
    if (depth_ == depth) return;
  }
}

void JsonReader::expect_end() {
  skip_space();
  if (at_ != end_) fail("unexpected text after the value");
}

}  // namespace keel::serving
