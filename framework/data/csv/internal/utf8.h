// Validation of UTF-8 text (RFC 3629).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace keel::data {

// Returns the length of the longest prefix that is complete, valid UTF-8. Overlong forms,
// surrogates and code points beyond U+10FFFF are invalid.
size_t utf8_prefix(std::string_view text);

inline constexpr size_t kUtf8Padding = 8;  // bytes after a text that is_padded_ascii() may read

// Returns true if all `size` bytes are below 0x80. Reads up to kUtf8Padding bytes after the text.
// Most fields are shorter than 8 bytes and take a single comparison.
inline bool is_padded_ascii(const char* text, size_t size) {
  constexpr uint64_t kHighBits = 0x8080808080808080;
  uint64_t word = 0;
  uint64_t high = 0;
  for (; size >= sizeof(word); text += sizeof(word), size -= sizeof(word)) {
    std::memcpy(&word, text, sizeof(word));
    high |= word;
  }
  std::memcpy(&word, text, sizeof(word));
  if constexpr (std::endian::native == std::endian::little) {
    word &= (uint64_t{1} << (8 * size)) - 1;
  } else {
    word &= size == 0 ? 0 : ~uint64_t{0} << (64 - 8 * size);
  }
  return ((high | word) & kHighBits) == 0;
}

}  // namespace keel::data
