// Base64 of RFC 4648, section 4.
#pragma once

#include <string>
#include <string_view>

namespace keel::serving {

// Appends the padded base64 form of `bytes`.
void append_base64(std::string& out, std::string_view bytes);

// Decodes base64 with or without padding, of the standard or the URL-safe alphabet. Returns false
// if `text` is something else.
bool decode_base64(std::string_view text, std::string& out);

}  // namespace keel::serving
