#include <keel/layers/callbacks/internal/png.h>

#include <algorithm>
#include <array>

namespace keel {
namespace {

// The checksum of PNG chunks (ISO 3309), whose polynomial is 0xEDB88320, bits reversed.
uint32_t crc32_of(const std::string& bytes) {
  static const std::array<uint32_t, 256> kTable = [] {
    std::array<uint32_t, 256> out = {};
    for (uint32_t i = 0; i < 256; ++i) {
      uint32_t value = i;
      for (int bit = 0; bit < 8; ++bit) value = value >> 1U ^ ((value & 1U) * 0xEDB88320U);
      out[i] = value;
    }
    return out;
  }();
  uint32_t out = 0xFFFFFFFFU;
  for (const char c : bytes) out = out >> 8U ^ kTable[(out ^ static_cast<uint8_t>(c)) & 0xFFU];
  return ~out;
}

uint32_t adler32_of(const std::string& bytes) {
  constexpr uint32_t kPrime = 65521;
  uint32_t a = 1, b = 0;
  for (const char c : bytes) {
    a = (a + static_cast<uint8_t>(c)) % kPrime;
    b = (b + a) % kPrime;
  }
  return b << 16U | a;
}

std::string big_endian(uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) {
    out += static_cast<char>(value >> static_cast<unsigned>(shift) & 0xFFU);
  }
  return out;
}

std::string chunk(const std::string& type, const std::string& data) {
  return big_endian(static_cast<uint32_t>(data.size())) + type + data +
         big_endian(crc32_of(type + data));
}

// Wraps bytes into a zlib stream of stored blocks (RFC 1950 and 1951).
std::string stored(const std::string& bytes) {
  constexpr size_t kMost = 65535;
  std::string out("\x78\x01", 2);
  size_t at = 0;
  do {
    const size_t n = std::min(kMost, bytes.size() - at);
    const bool last = at + n == bytes.size();
    const auto size = static_cast<uint16_t>(n);
    const auto inverse = static_cast<uint16_t>(~size);
    for (const int byte : {last ? 1 : 0, size & 0xFF, size >> 8, inverse & 0xFF, inverse >> 8}) {
      out += static_cast<char>(byte);
    }
    out.append(bytes, at, n);
    at += n;
  } while (at < bytes.size());
  return out + big_endian(adler32_of(bytes));
}

}  // namespace

std::string png_of(const std::string& pixels, int64_t width, int64_t height, int64_t channels) {
  constexpr char kDepth = 8, kGrey = 0, kColor = 2, kColorAndOpacity = 6;
  const char type = channels == 1 ? kGrey : channels == 3 ? kColor : kColorAndOpacity;
  std::string header =
      big_endian(static_cast<uint32_t>(width)) + big_endian(static_cast<uint32_t>(height));
  for (const char field : {kDepth, type, '\0', '\0', '\0'}) header += field;
  std::string rows;
  const auto row = static_cast<size_t>(width * channels);
  for (int64_t y = 0; y < height; ++y) {
    rows += '\0';  // no filter
    rows.append(pixels, static_cast<size_t>(y) * row, row);
  }
  return std::string("\x89PNG\r\n\x1a\n", 8) + chunk("IHDR", header) + chunk("IDAT", stored(rows)) +
         chunk("IEND", "");
}

}  // namespace keel
