// KeyDirectory: the keys of a table, or those that are counted for admission, with their counts and
// times.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include <keel/distribute/dynamic/internal/expiry_queue.h>
#include <keel/distribute/dynamic/internal/key_index.h>
#include <keel/distribute/dynamic/internal/key_records.h>

namespace keel::distribute {

// The order in which keys are removed when there are too many. Ties are decided by the key.
enum class KeyRank {
  kLastThenCount,  // the least recently used first
  kCountThenLast   // the least frequently used first
};

// A key with what its rank depends on.
template <class Key>
struct RankedKey {
  Key key;
  int64_t count = 0, last = 0;
};
// Returns true if `a` is removed before `b`.
template <class Key>
bool is_lower(KeyRank rank, const RankedKey<Key>& a, const RankedKey<Key>& b) {
  return rank == KeyRank::kLastThenCount
             ? std::tie(a.last, a.count, a.key) < std::tie(b.last, b.count, b.key)
             : std::tie(a.count, a.last, a.key) < std::tie(b.count, b.last, b.key);
}

// Key is int64_t or std::string. Keys have positions 0, 1, 2, ... A removed key's position is used
// again before a new one.
//
// Keys that are removed together leave at once for all functions, but the index and the records of
// most of them are cleaned later: each key that is added cleans some, so that no single step does
// the work of a large eviction. Any number of threads may read while no thread changes the
// directory.
template <class Key>
class KeyDirectory {
 public:
  static constexpr uint32_t kNone = KeyIndex::kNone;

  int64_t size() const { return size_; }    // number of keys
  int64_t limit() const { return limit_; }  // all positions are below
  // Returns the position of a key, or kNone.
  uint32_t find(const Key& key, uint64_t hash) const {
    return index_.find(hash, [&](uint32_t position) { return is_key(position, key); });
  }
  uint32_t find(const Key& key) const { return find(key, key_hash(key)); }
  // Finds many keys: calls fn(i, position) for i = 0, 1, ... n - 1, where position may be kNone.
  // key(i) and hash(i) return a key and its hash. Each key takes two accesses to memory, a slot of
  // the index and a record. Both are loaded some keys ahead, so that many accesses overlap.
  template <class KeyAt, class HashAt, class Fn>
  void find_all(size_t n, const KeyAt& key_at, const HashAt& hash_at, const Fn& fn) const {
    constexpr size_t kSlotsAhead = 64, kRecordsAhead = 16;
    std::array<uint32_t, kRecordsAhead> candidates;
    const auto load_record = [&](size_t i) {
      const uint32_t candidate = index_.first_candidate(hash_at(i));
      if (candidate != kNone) records_.prefetch(candidate);
      candidates[i % kRecordsAhead] = candidate;
    };
    for (size_t i = 0; i < std::min(kSlotsAhead, n); ++i) index_.prefetch(hash_at(i));
    for (size_t i = 0; i < std::min(kRecordsAhead, n); ++i) load_record(i);
    for (size_t i = 0; i < n; ++i) {
      uint32_t position = candidates[i % kRecordsAhead];
      // The first candidate has another key if a part of the hashes is equal.
      if (position != kNone && !is_key(position, key_at(i))) {
        position = find(key_at(i), hash_at(i));
      }
      if (i + kSlotsAhead < n) index_.prefetch(hash_at(i + kSlotsAhead));
      if (i + kRecordsAhead < n) load_record(i + kRecordsAhead);
      fn(i, position);
    }
  }

  // Access by position. Except for holds(), the position must have a key.
  bool holds(int64_t position) const { return records_.holds(position); }
  typename KeyRecords<Key>::KeyResult key(int64_t position) const { return records_.key(position); }
  KeyUse use(int64_t position) const { return records_.use(position); }
  // Counts occurrences of a key at a time. Throws std::bad_alloc, without a change, if the time is
  // too far from other times and there is no memory for larger numbers.
  void add_use(int64_t position, int64_t occurrences, int64_t now) {
    records_.add_use(position, occurrences, now);
  }
  // Loads the memory that add_use() will change.
  void prefetch_use(int64_t position) const { records_.prefetch(position); }

  // Adds a key that the directory does not contain. Returns its position. If it throws
  // std::bad_alloc, the directory is unchanged.
  uint32_t add(const Key& key, uint64_t hash, const KeyUse& use);
  uint32_t add(const Key& key, const KeyUse& use) { return add(key, key_hash(key), use); }
  // Adds many keys that the directory does not contain, at the positions limit(), limit() + 1, ...
  // Between clear() and the first key, reserve() makes room for `keys` keys, which is faster than
  // growth. If one of them throws std::bad_alloc, the caller must clear the directory.
  void reserve(int64_t keys);
  void append(std::span<const Key> keys, std::span<const uint64_t> hashes,
              std::span<const KeyUse> uses);
  // Lets take_expired() find keys. Call it while there are no keys.
  void track_expiry() { tracks_expiry_ = true; }
  // Returns the positions of the keys whose last occurrence was at `limit` or before, in no
  // particular order. The caller must remove them.
  std::vector<uint32_t> take_expired(int64_t limit);
  // Loads the memory that add() of a key with this hash will change.
  void prefetch_add(uint64_t hash) const { index_.prefetch(hash); }
  // Returns the position that the next key will have.
  int64_t next_position() const { return first_free_ == kNone ? limit_ : int64_t{first_free_}; }
  // Remove the keys at positions. Never throw. After remove_all(), the removed keys are still
  // stored until so many have been added, or forget_removed() is called.
  void remove(uint32_t position);
  void remove_all(std::span<const uint32_t> positions);
  void forget_removed() { clean(leaving_.size()); }
  void clear();
  // Halves all counts, rounding down.
  void halve_counts();

  // Returns the positions of all keys, in no particular order.
  std::vector<uint32_t> positions() const;
  // Returns the positions of all keys in ascending order of keys.
  std::vector<uint32_t> sorted() const;
  // Sorts positions in ascending order of keys.
  void sort(std::span<uint32_t> positions) const;
  // Return the positions of the `n` lowest keys in the order of `rank`: in ascending order, or in
  // the order of positions. They read the records in the order of memory, hardly ever more than
  // once.
  std::vector<uint32_t> lowest(int64_t n, KeyRank rank) const;
  std::vector<uint32_t> lowest_unordered(int64_t n, KeyRank rank) const;

  // Returns a key with its use.
  RankedKey<Key> ranked(uint32_t position) const {
    const KeyUse of = use(position);
    return {.key = key(position), .count = of.count, .last = of.last};
  }

  // Returns the bytes of memory, without those of strings.
  int64_t bytes() const {
    return index_.bytes() + records_.bytes() + expiry_.bytes() +
           static_cast<int64_t>(leaving_.capacity() * sizeof(uint32_t));
  }
  // Returns the share of used slots of the index.
  double load() const { return index_.load(); }

 private:
  // The number of keys that are cleaned when keys are removed together, and when a key is added.
  // Positions become free faster than they are used.
  static constexpr size_t kCleanedAtFirst = 256, kCleanedByAdd = 2;

  bool is_key(uint32_t position, const Key& key) const {
    return records_.key(position) == key && records_.holds(position);
  }
  // Removes keys that are leaving from the index, and makes their positions free.
  void clean(size_t keys);
  void release(uint32_t position);

  // The keys as the index reads them.
  struct IndexedKeys {
    const KeyRecords<Key>& records;
    uint64_t hash(uint32_t position) const { return key_hash(records.key(position)); }
    void prefetch(uint32_t position) const { records.prefetch(position); }
  };
  IndexedKeys indexed() const { return {records_}; }
  // A key that may be one of the lowest: its count and time in the order of the rank.
  struct Candidate {
    int64_t first = 0, second = 0;
    uint32_t position = 0;
  };
  bool is_before(const Candidate& a, const Candidate& b) const;
  inline Candidate candidate(int64_t position, KeyRank rank) const;
  std::optional<Candidate> bound_of_lowest(int64_t n, KeyRank rank, double factor) const;
  std::vector<Candidate> select_lowest(int64_t n, KeyRank rank) const;

  KeyIndex index_;
  KeyRecords<Key> records_;
  // A list of the positions without a key, below limit_; the last one removed is the first.
  uint32_t first_free_ = kNone;
  int64_t size_ = 0, limit_ = 0;
  // The positions of keys that are leaving begin at cleaned_.
  std::vector<uint32_t> leaving_;
  size_t cleaned_ = 0;
  bool tracks_expiry_ = false;
  ExpiryQueue expiry_;
};

extern template class KeyDirectory<int64_t>;
extern template class KeyDirectory<std::string>;

}  // namespace keel::distribute
