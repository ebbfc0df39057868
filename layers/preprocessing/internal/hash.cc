#include <keel/layers/preprocessing/internal/hash.h>

#include <bit>
#include <charconv>
#include <cstddef>
#include <farmhash.h>

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

Config encode(const HashingSalt& salt) { return Config::list({salt.first, salt.second}); }

void decode(const Config& config, HashingSalt& salt) {
  if (!config.is_list()) {
    salt = config.integer();
    return;
  }
  const Config::List& items = config.items();
  if (items.size() != 2) throw TypeError("salt: must be one or two integers");
  salt = {items[0].integer(), items[1].integer()};
}

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

uint64_t fingerprint64(std::string_view bytes) {
  return util::Fingerprint64(bytes.data(), bytes.size());
}

// MurmurHash64A's mixing steps, applied to two words.
uint64_t joined_fingerprint(uint64_t first, uint64_t second) {
  constexpr uint64_t kMultiplier = 0xc6a4a7935bd1e995;
  const auto shifted = [](uint64_t value) { return value ^ (value >> 47); };
  uint64_t out = first ^ kMultiplier ^ (shifted(second * kMultiplier) * kMultiplier);
  out = shifted(out * kMultiplier) * kMultiplier;
  return shifted(out);
}

int64_t hash_bucket(std::string_view word, int64_t count, const std::optional<HashingSalt>& salt) {
  const uint64_t hash = salt ? siphash24(static_cast<uint64_t>(salt->first),
                                         static_cast<uint64_t>(salt->second), word)
                             : fingerprint64(word);
  return static_cast<int64_t>(hash % static_cast<uint64_t>(count));
}

int64_t hash_bucket(int64_t number, int64_t count, const std::optional<HashingSalt>& salt) {
  char digits[24];
  const char* const end = std::to_chars(digits, digits + sizeof digits, number).ptr;
  return hash_bucket(std::string_view(digits, static_cast<size_t>(end - digits)), count, salt);
}

}  // namespace keel
