#include <keel/layers/preprocessing/internal/text.h>

#include <algorithm>

namespace keel {
namespace {

// These functions do not depend on the locale, unlike those of <cctype>.
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
bool is_punctuation(char c) {
  return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') ||
         (c >= '{' && c <= '~');
}

// Returns whether a byte may follow `first` in UTF-8 directly. The limits exclude overlong forms,
// surrogates and numbers beyond U+10FFFF.
bool may_follow(uint8_t first, uint8_t second) {
  const int low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const int high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  return second >= low && second <= high;
}

// Returns the number of bytes of a character that begins with `first`; 0 if no character does.
size_t length_of(uint8_t first) {
  if (first < 0x80) return 1;
  if (first < 0xC2 || first > 0xF4) return 0;
  return first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
}

}  // namespace

std::string standardized(std::string text, bool lower, bool strip_punctuation) {
  if (strip_punctuation) std::erase_if(text, is_punctuation);
  if (lower) {
    for (char& c : text) {
      if (is_upper(c)) c = static_cast<char>(c - 'A' + 'a');
    }
  }
  return text;
}

std::vector<std::string> split_whitespace(std::string_view text) {
  std::vector<std::string> out;
  const auto* at = text.begin();
  while (true) {
    at = std::find_if_not(at, text.end(), is_space);
    if (at == text.end()) return out;
    const auto* const end = std::find_if(at, text.end(), is_space);
    out.emplace_back(at, end);
    at = end;
  }
}

std::vector<std::string> split_characters(std::string_view text) {
  std::vector<std::string> out;
  for (size_t at = 0; at < text.size();) {
    const auto first = static_cast<uint8_t>(text[at]);
    const size_t length = length_of(first);
    size_t valid = 1;  // bytes from `at` that begin a character
    while (valid < length && at + valid < text.size()) {
      const auto next = static_cast<uint8_t>(text[at + valid]);
      if (!(valid == 1 ? may_follow(first, next) : (next & 0xC0) == 0x80)) break;
      ++valid;
    }
    out.push_back(valid == length ? std::string(text.substr(at, length)) : "\xEF\xBF\xBD");
    at += valid;
  }
  return out;
}

std::vector<std::string> ngrams(std::span<const std::string> tokens,
                                std::span<const int64_t> widths) {
  std::vector<std::string> out;
  for (const int64_t width : widths) {
    for (int64_t begin = 0; begin + width <= std::ssize(tokens); ++begin) {
      std::string joined = tokens[begin];
      for (int64_t i = 1; i < width; ++i) joined += ' ' + tokens[begin + i];
      out.push_back(std::move(joined));
    }
  }
  return out;
}

}  // namespace keel
