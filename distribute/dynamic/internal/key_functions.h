// The functions of a key that placement, initial rows and admission depend on. They are the same in
// all processes and on all machines.
#pragma once

#include <cstdint>
#include <string>

#include <keel/framework/base/internal/siphash.h>
#include <keel/framework/kernels/half.h>

namespace keel::distribute {

// Returns the hash of a key, H. It is independent of stream_key() for integers.
inline uint64_t key_hash(int64_t key) { return kernels::mixed_key(0, static_cast<uint64_t>(key)); }
inline uint64_t key_hash(const std::string& key) { return siphash24(0, 0, key); }

// Returns the number that selects the random streams of a key, u.
inline uint64_t stream_key(int64_t key) { return static_cast<uint64_t>(key); }
inline uint64_t stream_key(const std::string& key) { return siphash24(0, 0, key); }

// The keys are divided into shards by their hashes.
constexpr int kKeyShards = 1024;
inline int key_shard(uint64_t hash) { return static_cast<int>(hash >> 54U); }
// Returns the host that owns a shard.
inline int owner_of_key_shard(int shard, int hosts) {
  return static_cast<int>(static_cast<int64_t>(shard) * hosts / kKeyShards);
}

// Returns the fallback row of a key, of `rows` > 0 rows.
inline int64_t fallback_row(int64_t key, int64_t rows) {
  const int64_t remainder = key % rows;
  return remainder < 0 ? remainder + rows : remainder;
}
inline int64_t fallback_row(const std::string& key, int64_t rows) {
  return static_cast<int64_t>(siphash24(0, 0, key) % static_cast<uint64_t>(rows));
}

// Returns floor(a * b / 2^64).
inline uint64_t high_product(uint64_t a, uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  return static_cast<uint64_t>(Wide{a} * b >> 64U);
}

}  // namespace keel::distribute
