// Hashes that put words into buckets, the same on every machine.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <keel/framework/config/config.h>

namespace keel {

// The key of a salted hash: two integers, or one used twice.
struct HashingSalt {
  HashingSalt(int64_t both = 0) : first(both), second(both) {}  // NOLINT: implicit
  HashingSalt(int64_t a, int64_t b) : first(a), second(b) {}
  int64_t first, second;
};
Config encode(const HashingSalt& salt);  // a list of two
void decode(const Config& config, HashingSalt& salt);

// SipHash-2-4, a keyed hash of bytes (Aumasson and Bernstein 2012), read as little-endian words.
uint64_t siphash24(uint64_t key0, uint64_t key1, std::string_view bytes);

// The bucket in [0, count) that TensorFlow's string hashes give: FarmHash's 64-bit fingerprint
// modulo count without a salt, SipHash-2-4 with the salt as its key.
int64_t hash_bucket(std::string_view word, int64_t count,
                    const std::optional<HashingSalt>& salt = {});
// The same of an integer's decimal digits.
int64_t hash_bucket(int64_t number, int64_t count, const std::optional<HashingSalt>& salt = {});

}  // namespace keel
