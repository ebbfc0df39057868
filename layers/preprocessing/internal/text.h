// Functions that turn a text into tokens.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace keel {

// Converts ASCII letters to lower case, and removes ASCII punctuation.
std::string standardized(std::string text, bool lower, bool strip_punctuation);

// Returns the parts of a text between runs of ASCII whitespace.
std::vector<std::string> split_whitespace(std::string_view text);
// Returns the characters of a text in UTF-8. An invalid sequence of bytes, or the beginning of a
// character that is not complete, becomes one U+FFFD, as Unicode recommends.
std::vector<std::string> split_characters(std::string_view text);

// Returns all runs of widths[0] tokens, joined by spaces, then those of widths[1] tokens, and so
// on.
std::vector<std::string> ngrams(std::span<const std::string> tokens,
                                std::span<const int64_t> widths);

}  // namespace keel
