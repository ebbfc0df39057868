#include <keel/framework/base/internal/siphash.h>

#include <bit>

namespace keel {
namespace {

// The state of SipHash.
struct State {
  uint64_t a, b, c, d;

  void rounds(int count) {
    for (int i = 0; i < count; ++i) {
      a += b;
      c += d;
      b = std::rotl(b, 13) ^ a;
      d = std::rotl(d, 16) ^ c;
      a = std::rotl(a, 32) + d;
      c += b;
      d = std::rotl(d, 21) ^ a;
      b = std::rotl(b, 17) ^ c;
      c = std::rotl(c, 32);
    }
  }

  void absorb(uint64_t word) {
    d ^= word;
    rounds(2);
    a ^= word;
  }
};

uint64_t little_endian(std::string_view bytes) {
  uint64_t word = 0;
  for (size_t i = 0; i < bytes.size(); ++i) {
    word |= uint64_t{static_cast<unsigned char>(bytes[i])} << (8 * i);
  }
  return word;
}

}  // namespace

uint64_t siphash24(uint64_t key0, uint64_t key1, std::string_view bytes) {
  // These constants of SipHash spell "somepseudorandomlygeneratedbytes".
  State s = {.a = key0 ^ 0x736f6d6570736575,
             .b = key1 ^ 0x646f72616e646f6d,
             .c = key0 ^ 0x6c7967656e657261,
             .d = key1 ^ 0x7465646279746573};
  const size_t whole = bytes.size() / 8 * 8;
  for (size_t i = 0; i < whole; i += 8) s.absorb(little_endian(bytes.substr(i, 8)));
  s.absorb(little_endian(bytes.substr(whole)) | uint64_t{bytes.size() & 0xff} << 56);
  s.c ^= 0xff;
  s.rounds(4);
  return s.a ^ s.b ^ s.c ^ s.d;
}

}  // namespace keel
