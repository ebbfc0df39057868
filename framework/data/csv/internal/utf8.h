// Validation of UTF-8 text (RFC 3629).
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace keel::data {

// The length of the longest prefix that is whole, valid UTF-8: neither overlong forms, surrogates,
// nor code points beyond U+10FFFF.
size_t utf8_prefix(std::string_view text);

inline constexpr size_t kUtf8Padding = 8;  // bytes behind a text that is_padded_ascii may read

// Whether all of the `size` bytes are below 0x80. For most fields, one comparison.
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
