// Validation of UTF-8.
#pragma once

#include <string>
#include <string_view>

namespace keel::serving {

// Returns true if `text` is valid UTF-8 without surrogates and overlong forms.
bool is_utf8(std::string_view text);

// Returns the number of bytes of the character that starts at text[at], or 0 if it is invalid.
size_t utf8_length(std::string_view text, size_t at);

// Returns `text` with each invalid byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// Appends the UTF-8 form of a code point, which must be valid.
void append_utf8(std::string& out, char32_t code_point);

}  // namespace keel::serving
