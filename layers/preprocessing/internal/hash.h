// Hash functions that map words to buckets, with the same results on all machines.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <keel/framework/base/internal/siphash.h>
#include <keel/layers/preprocessing/hashing.h>

namespace keel {

// Returns FarmHash's 64-bit fingerprint.
uint64_t fingerprint64(std::string_view bytes);
// Returns the fingerprint of a pair of fingerprints, in this order, as TensorFlow joins them.
uint64_t joined_fingerprint(uint64_t first, uint64_t second);

// Returns the bucket in [0, count) of TensorFlow's string hashes: without a salt FarmHash's 64-bit
// fingerprint modulo count, otherwise SipHash-2-4 with the salt as its key.
int64_t hash_bucket(std::string_view word, int64_t count,
                    const std::optional<HashingSalt>& salt = {});
// Returns the bucket of the decimal digits of an integer.
int64_t hash_bucket(int64_t number, int64_t count, const std::optional<HashingSalt>& salt = {});

}  // namespace keel
