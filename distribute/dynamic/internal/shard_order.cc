#include <keel/distribute/dynamic/internal/shard_order.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <type_traits>

#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/framework/base/parallel.h>

namespace keel::distribute {
namespace {

// A key and its position. Sorting reads int64 keys here, not in the directory.
struct PlacedNumber {
  int64_t key;
  uint32_t position;
};
struct PlacedString {
  uint32_t position;
};

template <class Key>
auto placed(const KeyDirectory<Key>& of, uint32_t position) {
  if constexpr (std::is_same_v<Key, int64_t>) {
    return PlacedNumber{.key = of.key(position), .position = position};
  } else {
    return PlacedString{.position = position};
  }
}

template <class Key>
bool is_before(const KeyDirectory<Key>& of, const auto& a, const auto& b) {
  if constexpr (std::is_same_v<Key, int64_t>) {
    return a.key < b.key;
  } else {
    return of.key(a.position) < of.key(b.position);
  }
}

}  // namespace

// Distributes the keys to their shards, then sorts each shard.
template <class Key>
std::vector<uint32_t> shard_order(const KeyDirectory<Key>& of) {
  constexpr int64_t kKeysPerBlock = 1 << 14;
  constexpr int64_t kShardsPerBlock = 16;
  const std::vector<uint32_t> positions = of.positions();
  std::vector<uint16_t> shards(positions.size());
  parallel_for(std::ssize(positions), kKeysPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      shards[i] = static_cast<uint16_t>(key_shard(key_hash(of.key(positions[i]))));
    }
  });
  std::array<int64_t, kKeyShards + 1> first{};
  for (const uint16_t shard : shards) ++first[shard + 1];
  std::partial_sum(first.begin(), first.end(), first.begin());
  std::vector<decltype(placed(of, 0))> keys(positions.size());
  auto next = first;
  for (size_t i = 0; i < positions.size(); ++i) keys[next[shards[i]]++] = placed(of, positions[i]);
  std::vector<uint32_t> out(positions.size());
  parallel_for(kKeyShards, kShardsPerBlock, [&](int64_t begin, int64_t end) {
    for (int64_t shard = begin; shard < end; ++shard) {
      std::sort(keys.begin() + first[shard], keys.begin() + first[shard + 1],
                [&](const auto& a, const auto& b) { return is_before(of, a, b); });
    }
    for (int64_t i = first[begin]; i < first[end]; ++i) out[i] = keys[i].position;
  });
  return out;
}

template std::vector<uint32_t> shard_order(const KeyDirectory<int64_t>&);
template std::vector<uint32_t> shard_order(const KeyDirectory<std::string>&);

}  // namespace keel::distribute
