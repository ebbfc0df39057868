#include <keel/savedmodel/serving/base/json_text.h>

#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>

#include <keel/savedmodel/serving/base/serve_error.h>

namespace keel::serving {
namespace {

template <class T>
void append_floating(std::string& out, T value) {
  if (!std::isfinite(value)) {
    out += std::isnan(value) ? "NaN" : value > 0 ? "Infinity" : "-Infinity";
    return;
  }
  char text[40];
  char* end = std::to_chars(text, text + sizeof text, value).ptr;
  const std::string_view written(text, static_cast<size_t>(end - text));
  if (written.find_first_of(".e") == std::string_view::npos) {
    *end++ = '.';
    *end++ = '0';
  }
  out.append(text, static_cast<size_t>(end - text));
}

}  // namespace

void append_json_number(std::string& out, float value) { append_floating(out, value); }
void append_json_number(std::string& out, double value) { append_floating(out, value); }

template <std::integral T>
void append_json_number(std::string& out, T value) {
  char text[24];
  out.append(text, std::to_chars(text, text + sizeof text, value).ptr);
}
template void append_json_number(std::string& out, int8_t value);
template void append_json_number(std::string& out, uint8_t value);
template void append_json_number(std::string& out, int32_t value);
template void append_json_number(std::string& out, int64_t value);
template void append_json_number(std::string& out, uint64_t value);

void append_json_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out.push_back('"');
  for (const char c : text) {
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
    } else if (static_cast<unsigned char>(c) >= 0x20) {
      out.push_back(c);
    } else if (c == '\n') {
      out += "\\n";
    } else if (c == '\t') {
      out += "\\t";
    } else if (c == '\r') {
      out += "\\r";
    } else {
      out += "\\u00";
      out.push_back(kHex[c >> 4]);
      out.push_back(kHex[c & 15]);
    }
  }
  out.push_back('"');
}

std::string json_error(std::string_view message) {
  std::string out = "{\"error\": ";
  append_json_string(out, one_line(message));
  return out + "}";
}

}  // namespace keel::serving
