#include <keel/savedmodel/serving/base/base64.h>

#include <array>
#include <cstdint>

namespace keel::serving {
namespace {

constexpr std::string_view kAlphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

constexpr std::array<int8_t, 256> reversed_alphabet() {
  std::array<int8_t, 256> out{};
  out.fill(-1);
  for (size_t i = 0; i < kAlphabet.size(); ++i) {
    out[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  }
  out['-'] = 62;
  out['_'] = 63;
  return out;
}
constexpr std::array<int8_t, 256> kValueOf = reversed_alphabet();

}  // namespace

void append_base64(std::string& out, std::string_view bytes) {
  const auto at = [&](size_t i) {
    return i < bytes.size() ? static_cast<uint32_t>(static_cast<unsigned char>(bytes[i])) : 0U;
  };
  for (size_t i = 0; i < bytes.size(); i += 3) {
    const uint32_t bits = at(i) << 16 | at(i + 1) << 8 | at(i + 2);
    out.push_back(kAlphabet[bits >> 18]);
    out.push_back(kAlphabet[(bits >> 12) & 63]);
    out.push_back(i + 1 < bytes.size() ? kAlphabet[(bits >> 6) & 63] : '=');
    out.push_back(i + 2 < bytes.size() ? kAlphabet[bits & 63] : '=');
  }
}

bool decode_base64(std::string_view text, std::string& out) {
  out.clear();
  if (text.ends_with("==")) {
    if (text.size() % 4 != 0) return false;
    text.remove_suffix(2);
  } else if (text.ends_with('=')) {
    if (text.size() % 4 != 0) return false;
    text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) return false;
  uint32_t bits = 0;
  int count = 0;
  for (char c : text) {
    const int value = kValueOf[static_cast<unsigned char>(c)];
    if (value < 0) return false;
    bits = bits << 6 | static_cast<uint32_t>(value);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>(bits >> count & 0xFF));
    }
  }
  return true;
}

}  // namespace keel::serving
