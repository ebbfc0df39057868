// DistinctKeys: numbers the distinct keys of a batch.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace keel::distribute {

// Key is int64_t or std::string.
template <class Key>
class DistinctKeys {
 public:
  // Numbers at most `most` keys.
  explicit DistinctKeys(size_t most)
      : slots_(std::bit_ceil(std::max<size_t>(8, 2 * most)), kNone) {}

  // Returns the number of a key: 0, 1, 2, ... in the order of first occurrence.
  uint32_t number(const Key& key, uint64_t hash) {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      uint32_t& slot = slots_[at];
      if (slot == kNone) {
        slot = static_cast<uint32_t>(keys_.size());
        keys_.push_back(key);
        hashes_.push_back(hash);
        return slot;
      }
      if (hashes_[slot] == hash && keys_[slot] == key) return slot;
    }
  }

  // The keys and their hashes, by number.
  size_t size() const { return keys_.size(); }
  const Key& key(size_t number) const { return keys_[number]; }
  uint64_t hash(size_t number) const { return hashes_[number]; }

 private:
  static constexpr uint32_t kNone = 0xffffffff;
  std::vector<uint32_t> slots_;
  std::vector<Key> keys_;
  std::vector<uint64_t> hashes_;
};

}  // namespace keel::distribute
