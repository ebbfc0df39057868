#include <nlohmann/json.hpp>

#include <absl/strings/match.h>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <ostream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <keel/framework/config/config.h>

namespace keel {
namespace {

// Configs are read, compared and freed recursively, so the depth is limited; real ones nest about
// 20 levels deep.
constexpr size_t kMaxDepth = 512;

// Appends a UTF-16 code unit as \uXXXX.
void append_escape(std::string& out, uint32_t unit) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  out += "\\u";
  for (int shift = 12; shift >= 0; shift -= 4) out += kDigits[(unit >> shift) & 15];
}

// Decodes the UTF-8 sequence at `at` and advances `at` past it.
uint32_t next_code_point(const std::string& text, size_t& at) {
  const auto byte = [&](size_t i) -> uint32_t {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : 0;
  };
  const uint32_t lead = byte(at);
  const int more = lead < 0x80 ? 0 : lead < 0xC2 ? -1 : lead < 0xE0 ? 1 : lead < 0xF0 ? 2 : 3;
  constexpr std::array<uint32_t, 4> kSmallest = {0, 0x80, 0x800, 0x10000};
  uint32_t point = more <= 0 ? lead : lead & (0x3FU >> more);
  bool valid = more >= 0 && lead < 0xF5;
  for (int i = 1; i <= more; ++i) {
    const uint32_t next = byte(at + i);
    valid = valid && (next & 0xC0) == 0x80;
    point = point << 6 | (next & 0x3F);
  }
  if (!valid || point < kSmallest[more] || point > 0x10FFFF ||
      (point >= 0xD800 && point < 0xE000)) {
    throw ValueError("to_json: a string is not valid UTF-8: byte ", lead, " at offset ", at,
                     "; encode it as UTF-8");
  }
  at += more + 1;
  return point;
}

void append_string(std::string& out, const std::string& text) {
  out += '"';
  for (size_t at = 0; at < text.size();) {
    const uint32_t c = next_code_point(text, at);
    constexpr std::string_view kSpecial = "\"\\\n\r\t\f\b";
    constexpr std::string_view kLetter = "\"\\nrtfb";
    if (c < 0x80 && kSpecial.find(static_cast<char>(c)) != std::string_view::npos) {
      out += '\\';
      out += kLetter[kSpecial.find(static_cast<char>(c))];
    } else if (c >= ' ' && c <= '~') {
      out += static_cast<char>(c);
    } else if (c < 0x10000) {
      append_escape(out, c);
    } else {
      append_escape(out, 0xD800 + ((c - 0x10000) >> 10));
      append_escape(out, 0xDC00 + ((c - 0x10000) & 0x3FF));
    }
  }
  out += '"';
}

// Appends a double like Python's repr: the fewest digits that read back the same value, positional
// notation for exponents -4 to 15, and always a '.' or an 'e'.
void append_double(std::string& out, double v) {
  if (std::isnan(v)) {
    out += "NaN";
  } else if (std::isinf(v)) {
    out += v > 0 ? "Infinity" : "-Infinity";
  } else {
    std::array<char, 32> buffer;
    const auto print = [&](std::chars_format format) {
      const auto end = std::to_chars(buffer.begin(), buffer.end(), v, format).ptr;
      return std::string_view(buffer.data(), end - buffer.data());
    };
    std::string_view digits = print(std::chars_format::scientific);
    const std::string_view after_e = digits.substr(digits.find('e') + 1);
    int exponent = 0;
    std::from_chars(after_e.begin() + (after_e[0] == '+' ? 1 : 0), after_e.end(), exponent);
    const bool positional = exponent >= -4 && exponent < 16;
    if (positional) digits = print(std::chars_format::fixed);
    out += digits;
    if (positional && digits.find('.') == std::string_view::npos) out += ".0";
  }
}

void append(std::string& out, const Config& config) {
  if (config.is_null()) {
    out += "null";
  } else if (config.is_bool()) {
    out += config.boolean() ? "true" : "false";
  } else if (config.is_integer()) {
    out += std::to_string(config.integer());
  } else if (config.is_number()) {
    append_double(out, config.number());
  } else if (config.is_string()) {
    append_string(out, config.string());
  } else if (config.is_list()) {
    out += '[';
    for (const Config& item : config.items()) {
      if (&item != config.items().data()) out += ", ";
      append(out, item);
    }
    out += ']';
  } else {
    out += '{';
    for (const auto& entry : config.entries()) {
      if (&entry != config.entries().data()) out += ", ";
      append_string(out, entry.first);
      out += ": ";
      append(out, entry.second);
    }
    out += '}';
  }
}

// JSON text in which Python's NaN, Infinity and -Infinity are replaced by plain numbers of the same
// length, so that offsets in error messages stay correct. `values` maps the position of each of
// them among all numbers of the text to its value.
struct PlainText {
  std::string text;
  std::unordered_map<size_t, double> values;
};

bool is_word_or_number(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '.' ||
         c == '+' || c == '-' || c == '_';
}

size_t end_of_string(const std::string& text, size_t quote) {
  for (size_t i = quote + 1; i < text.size(); ++i) {
    if (text[i] == '\\') {
      ++i;
    } else if (text[i] == '"') {
      return i + 1;
    }
  }
  return text.size();
}

PlainText without_words(std::string text) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Word {
    std::string_view word, number;
    double value;
  };
  constexpr std::array<Word, 3> kWords = {{
      {"NaN", "0.0", std::numeric_limits<double>::quiet_NaN()},
      {"Infinity", "0.000000", kInfinity},
      {"-Infinity", "-0.000000", -kInfinity},
  }};
  PlainText out;
  size_t numbers = 0;
  for (size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      i = end_of_string(text, i);
      continue;
    }
    size_t end = i;
    while (end < text.size() && is_word_or_number(text[end])) ++end;
    const auto token = std::string_view(text).substr(i, end - i);
    const auto it = std::ranges::find(kWords, token, &Word::word);
    if (it != kWords.end()) {
      out.values[numbers++] = it->value;
      text.replace(i, token.size(), it->number);
    } else if (!token.empty() && (token[0] == '-' || (token[0] >= '0' && token[0] <= '9'))) {
      ++numbers;
    }
    i = std::max(end, i + 1);
  }
  out.text = std::move(text);
  return out;
}

// Removes repeated keys as Python does: the first occurrence determines the position, the last one
// the value.
void drop_repeated_keys(Config::Dict& entries) {
  std::unordered_map<std::string_view, size_t> seen;
  std::vector<bool> repeated(entries.size());
  for (size_t i = 0; i < entries.size(); ++i) {
    const auto [it, added] = seen.emplace(entries[i].first, i);
    if (added) continue;
    entries[it->second].second = std::move(entries[i].second);
    repeated[i] = true;
  }
  if (seen.size() == entries.size()) return;
  std::erase_if(entries, [&](const auto& entry) { return repeated[&entry - entries.data()]; });
}

// Builds a Config from the events of nlohmann's SAX parser.
class Builder final : public nlohmann::json_sax<nlohmann::ordered_json> {
 public:
  explicit Builder(const std::unordered_map<size_t, double>& words) : words_(words) {}

  Config take() { return std::move(root_); }

  bool null() override { return add(Config()); }
  bool boolean(bool v) override { return add(v); }
  bool number_integer(int64_t v) override { return add_number(v); }
  bool number_unsigned(uint64_t v) override {
    if (v > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) {
      return add_number(static_cast<double>(v));
    }
    return add_number(static_cast<int64_t>(v));
  }
  bool number_float(double v, const std::string&) override { return add_number(v); }
  bool string(std::string& v) override { return add(std::move(v)); }
  bool binary(binary_t&) override { return false; }
  bool start_object(size_t) override { return open(true); }
  bool start_array(size_t) override { return open(false); }
  bool key(std::string& v) override {
    open_.back().key = std::move(v);
    return true;
  }
  bool end_object() override {
    Config::Dict entries = std::move(open_.back().entries);
    open_.pop_back();
    drop_repeated_keys(entries);
    return add(std::move(entries));
  }
  bool end_array() override {
    Config::List items = std::move(open_.back().items);
    open_.pop_back();
    return add(std::move(items));
  }
  bool parse_error(size_t position, const std::string& token,
                   const nlohmann::detail::exception& error) override {
    // `position` counts the characters read, including the invalid one.
    throw ValueError("parse_json: syntax error at offset ", position == 0 ? 0 : position - 1,
                     ", at '", token, "': ", error.what());
  }

 private:
  struct Container {
    bool is_dict;
    Config::Dict entries = {};
    Config::List items = {};
    std::string key = {};  // key of the next entry
  };

  bool open(bool is_dict) {
    if (open_.size() == kMaxDepth) {
      throw ValueError("parse_json: the text nests more than ", kMaxDepth, " levels; flatten it");
    }
    open_.push_back({.is_dict = is_dict});
    return true;
  }
  bool add_number(Config v) {
    const auto word = words_.find(numbers_++);
    return add(word == words_.end() ? std::move(v) : Config(word->second));
  }
  bool add(Config v) {
    if (open_.empty()) {
      root_ = std::move(v);
    } else if (open_.back().is_dict) {
      open_.back().entries.emplace_back(std::move(open_.back().key), std::move(v));
    } else {
      open_.back().items.push_back(std::move(v));
    }
    return true;
  }

  const std::unordered_map<size_t, double>& words_;
  size_t numbers_ = 0;
  std::vector<Container> open_;
  Config root_;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Config& config) { return out << to_json(config); }

std::string to_json(const Config& config) {
  std::string out;
  append(out, config);
  return out;
}

Config parse_json(const std::string& text) {
  const bool has_words = absl::StrContains(text, "NaN") || absl::StrContains(text, "Infinity");
  const PlainText plain = has_words ? without_words(text) : PlainText{};
  Builder builder(plain.values);
  nlohmann::ordered_json::sax_parse(has_words ? plain.text : text, &builder);
  return builder.take();
}

}  // namespace keel
