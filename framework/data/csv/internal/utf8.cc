#include <keel/framework/data/csv/internal/utf8.h>

namespace keel::data {
namespace {

uint8_t byte_at(std::string_view text, size_t i) {
  return i < text.size() ? static_cast<uint8_t>(text[i]) : 0;
}

// Returns the length of the character at `at`, or 0 if it is incomplete or invalid.
size_t character_length(std::string_view text, size_t at) {
  const uint8_t lead = byte_at(text, at);
  if (lead < 0x80) return 1;
  // 0xC0 and 0xC1 start overlong forms; bytes above 0xF4 start code points beyond U+10FFFF.
  if (lead < 0xC2 || lead > 0xF4) return 0;
  const size_t length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The range of the second byte excludes other overlong forms (E0, F0), surrogates (ED) and code
  // points beyond the last one (F4).
  const uint8_t least = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t most = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  const uint8_t second = byte_at(text, at + 1);
  if (second < least || second > most) return 0;
  for (size_t i = 2; i < length; ++i) {
    if ((byte_at(text, at + i) & 0xC0) != 0x80) return 0;
  }
  return length;
}

}  // namespace

size_t utf8_prefix(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = character_length(text, at);
    if (length == 0) return at;
    at += length;
  }
  return at;
}

}  // namespace keel::data
