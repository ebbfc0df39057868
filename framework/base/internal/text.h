// Converts between numbers and text.
#pragma once

#include <charconv>
#include <optional>
#include <string>
#include <string_view>

namespace keel {

// Parses the whole text as a number, including "nan" and "inf". Returns nothing if it is not a
// number or out of range.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  T out = {};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return out;
}

// Returns the shortest text that reads back as the same number: "0.1", "1e-07", "nan".
template <class T>
std::string number_text(T value) {
  char text[64];
  return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

}  // namespace keel
