#include <keel/layers/visualization/internal/xml_text.h>

namespace keel {
namespace {

const char* entity_of(char c) {
  switch (c) {
    case '&':
      return "&amp;";
    case '<':
      return "&lt;";
    case '>':
      return "&gt;";
    case '"':
      return "&quot;";
    case '\'':
      return "&#39;";
    default:
      return nullptr;
  }
}

}  // namespace

std::string xml_escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (const char* entity = entity_of(c)) {
      out += entity;
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace keel
