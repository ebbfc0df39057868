#include <keel/layers/preprocessing/internal/hash.h>

#include <charconv>
#include <farmhash.h>

namespace keel {

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
