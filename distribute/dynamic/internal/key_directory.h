// KeyDirectory: the keys of a table, or those that are counted for admission, with their counts and
// times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include <keel/distribute/dynamic/internal/chunked_array.h>
#include <keel/distribute/dynamic/internal/expiry_queue.h>
#include <keel/distribute/dynamic/internal/key_index.h>

namespace keel::distribute {

// What a directory knows about a key.
struct KeyUse {
  static constexpr int64_t kFree = ExpiryQueue::kNone;
  int64_t last = kFree;  // time of the last occurrence; kFree: the position has no key
  int64_t born = 0;      // time when the key was added
  uint32_t count = 0;    // occurrences; saturates

  // Counts occurrences at a time.
  void add(int64_t occurrences, int64_t now) {
    constexpr auto kMost = static_cast<int64_t>(std::numeric_limits<uint32_t>::max());
    count = static_cast<uint32_t>(occurrences < kMost - count ? count + occurrences : kMost);
    last = now;
  }
};

// The order in which keys are removed when there are too many. Ties are decided by the key.
enum class KeyRank {
  kLastThenCount,  // the least recently used first
  kCountThenLast   // the least frequently used first
};

// Key is int64_t or std::string. Keys have positions 0, 1, 2, ... A removed key's position is used
// again before a new one. Any number of threads may read while no thread changes the directory.
template <class Key>
class KeyDirectory {
 public:
  static constexpr uint32_t kNone = KeyIndex::kNone;

  int64_t size() const { return size_; }    // number of keys
  int64_t limit() const { return limit_; }  // all positions are below
  // Returns the position of a key, or kNone.
  uint32_t find(const Key& key, uint64_t hash) const {
    return index_.find(hash, [&](uint32_t position) { return keys_[position] == key; });
  }
  uint32_t find(const Key& key) const { return find(key, key_hash(key)); }
  // Finds many keys: calls fn(i, position) for i = 0, 1, ... n - 1, where position may be kNone.
  // key(i) and hash(i) return a key and its hash. Memory is loaded some keys ahead.
  template <class KeyAt, class HashAt, class Fn>
  void find_all(size_t n, const KeyAt& key_at, const HashAt& hash_at, const Fn& fn) const {
    constexpr size_t kIndexAhead = 32, kKeysAhead = 12;
    for (size_t i = 0; i < std::min(kIndexAhead, n); ++i) index_.prefetch(hash_at(i));
    for (size_t i = 0; i < std::min(kKeysAhead, n); ++i) prefetch_key(hash_at(i));
    for (size_t i = 0; i < n; ++i) {
      if (i + kIndexAhead < n) index_.prefetch(hash_at(i + kIndexAhead));
      if (i + kKeysAhead < n) prefetch_key(hash_at(i + kKeysAhead));
      fn(i, find(key_at(i), hash_at(i)));
    }
  }

  // Access by position, which must have a key.
  bool holds(int64_t position) const { return uses_[position].last != KeyUse::kFree; }
  const Key& key(int64_t position) const { return keys_[position]; }
  const KeyUse& use(int64_t position) const { return uses_[position]; }
  KeyUse& use(int64_t position) { return uses_[position]; }

  // Adds a key that the directory does not contain. Returns its position. If it throws
  // std::bad_alloc, the directory is unchanged.
  uint32_t add(const Key& key, uint64_t hash, const KeyUse& use);
  uint32_t add(const Key& key, const KeyUse& use) { return add(key, key_hash(key), use); }
  // Lets take_expired() find keys. Call it while there are no keys.
  void track_expiry() { tracks_expiry_ = true; }
  // Returns the positions of the keys whose last occurrence was at `limit` or before, in no
  // particular order. The caller must remove them.
  std::vector<uint32_t> take_expired(int64_t limit) {
    return expiry_.take_expired(limit, [this](uint32_t position) { return uses_[position].last; });
  }
  // Removes the key at a position.
  void remove(uint32_t position);
  void clear();
  // Halves all counts, rounding down.
  void halve_counts();

  // Returns the positions of all keys, in no particular order.
  std::vector<uint32_t> positions() const;
  // Returns the positions of all keys in ascending order of keys.
  std::vector<uint32_t> sorted() const;
  // Sorts positions in ascending order of keys.
  void sort(std::span<uint32_t> positions) const;
  // Returns the positions of the `n` lowest keys in the order of `rank`, in ascending order.
  std::vector<uint32_t> lowest(int64_t n, KeyRank rank) const;

  // Returns the bytes of memory, without those of strings.
  int64_t bytes() const {
    return index_.bytes() + keys_.bytes() + uses_.bytes() +
           static_cast<int64_t>(free_.capacity() * sizeof(uint32_t));
  }

 private:
  void prefetch_key(uint64_t hash) const {
    const uint32_t position = index_.first_candidate(hash);
    if (position == kNone) return;
    __builtin_prefetch(&keys_[position]);
    __builtin_prefetch(&uses_[position], 1);
  }

  KeyIndex index_;
  ChunkedArray<Key> keys_;
  ChunkedArray<KeyUse> uses_;
  std::vector<uint32_t> free_;  // positions without a key, below limit_
  int64_t size_ = 0, limit_ = 0;
  bool tracks_expiry_ = false;
  ExpiryQueue expiry_;
};

extern template class KeyDirectory<int64_t>;
extern template class KeyDirectory<std::string>;

}  // namespace keel::distribute
