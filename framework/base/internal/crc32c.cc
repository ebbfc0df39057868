#include <keel/framework/base/internal/crc32c.h>

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace keel {
namespace {

constexpr uint32_t kPolynomial = 0x82F63B78;  // reflected
constexpr uint32_t kMaskDelta = 0xA282EAD8;

using Table = std::array<uint32_t, 256>;

// tables[k][b] is the change of the checksum caused by a byte b followed by k zero bytes.
constexpr std::array<Table, 8> make_tables() {
  std::array<Table, 8> tables = {};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    tables[0][byte] = crc;
  }
  for (size_t k = 1; k < tables.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = tables[k - 1][byte];
      tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
    }
  }
  return tables;
}

constexpr std::array<Table, 8> kTables = make_tables();

#if defined(__x86_64__)
// The instruction has a latency of three cycles and each depends on the one before, so three
// independent lanes are computed at once.
constexpr size_t kLane = 128;  // bytes

// shift[k][b] is the checksum after a lane of zero bytes that follows a checksum whose byte k is b
// and whose other bytes are zero.
constexpr std::array<Table, 4> make_shift() {
  std::array<Table, 4> shift = {};
  for (uint32_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t i = 0; i < kLane; ++i) crc = (crc >> 8) ^ kTables[0][crc & 0xFF];
    for (uint32_t byte = 0; byte < 256; ++byte) {
      if ((byte >> bit % 8 & 1) != 0) shift[bit / 8][byte] ^= crc;
    }
  }
  return shift;
}

constexpr std::array<Table, 4> kShift = make_shift();

// Returns the checksum after kLane more zero bytes. The checksum is linear over XOR, which lets the
// results of the lanes be combined.
uint32_t behind_zeros(uint64_t crc) {
  return kShift[0][crc & 0xFF] ^ kShift[1][crc >> 8 & 0xFF] ^ kShift[2][crc >> 16 & 0xFF] ^
         kShift[3][crc >> 24 & 0xFF];
}

uint64_t load_word(const char* p) {
  uint64_t word = 0;
  std::memcpy(&word, p, sizeof(word));
  return word;
}

[[gnu::target("sse4.2")]] uint32_t instruction_crc32c(std::string_view bytes) {
  constexpr size_t kWord = sizeof(uint64_t);
  const char* p = bytes.data();
  size_t left = bytes.size();
  uint64_t crc = 0xFFFFFFFF;
  for (; left >= 3 * kLane; p += 3 * kLane, left -= 3 * kLane) {
    uint64_t second = 0, third = 0;
    for (size_t i = 0; i < kLane; i += kWord) {
      crc = _mm_crc32_u64(crc, load_word(p + i));
      second = _mm_crc32_u64(second, load_word(p + kLane + i));
      third = _mm_crc32_u64(third, load_word(p + 2 * kLane + i));
    }
    crc = behind_zeros(behind_zeros(crc) ^ second) ^ third;
  }
  for (; left >= kWord; p += kWord, left -= kWord) crc = _mm_crc32_u64(crc, load_word(p));
  auto out = static_cast<uint32_t>(crc);
  for (; left > 0; ++p, --left) out = _mm_crc32_u8(out, static_cast<unsigned char>(*p));
  return ~out;
}
#endif

}  // namespace

uint32_t crc32c_internal::portable_crc32c(std::string_view bytes) {
  const auto* p = reinterpret_cast<const unsigned char*>(bytes.data());
  size_t left = bytes.size();
  uint32_t crc = 0xFFFFFFFF;
  for (; left >= 8; p += 8, left -= 8) {
    crc ^= static_cast<uint32_t>(p[0]) | static_cast<uint32_t>(p[1]) << 8 |
           static_cast<uint32_t>(p[2]) << 16 | static_cast<uint32_t>(p[3]) << 24;
    crc = kTables[7][crc & 0xFF] ^ kTables[6][crc >> 8 & 0xFF] ^ kTables[5][crc >> 16 & 0xFF] ^
          kTables[4][crc >> 24] ^ kTables[3][p[4]] ^ kTables[2][p[5]] ^ kTables[1][p[6]] ^
          kTables[0][p[7]];
  }
  for (; left > 0; ++p, --left) crc = (crc >> 8) ^ kTables[0][(crc ^ *p) & 0xFF];
  return ~crc;
}

uint32_t crc32c(std::string_view bytes) {
#if defined(__x86_64__)
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
  if (kHasInstruction) return instruction_crc32c(bytes);
#endif
  return crc32c_internal::portable_crc32c(bytes);
}

uint32_t masked_crc32c(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + kMaskDelta; }

}  // namespace keel
