// Writes values as JSON text.
#pragma once

#include <concepts>
#include <string>
#include <string_view>

namespace keel::serving {

// Appends `text`, which must be UTF-8, as a JSON string.
void append_json_string(std::string& out, std::string_view text);

// Append a number. Floating values are the shortest text that reads back to the same value of their
// type, with ".0" if it has neither a point nor an exponent, or NaN, Infinity and -Infinity.
void append_json_number(std::string& out, float value);
void append_json_number(std::string& out, double value);
template <std::integral T>
void append_json_number(std::string& out, T value);

// Returns {"error": message} with the message as one line.
std::string json_error(std::string_view message);

}  // namespace keel::serving
