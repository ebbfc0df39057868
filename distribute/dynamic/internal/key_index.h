// KeyIndex: finds the positions of keys.
//
// A position is a number that the caller gives to a key, for example the index of a row. The index
// is a hash table with open addressing and linear probing. It stores positions and 32 bits of the
// hashes; keys are compared in the array that the caller passes, which the probe of an absent key
// seldom reads.
//
// The index consists of one table for each key shard. Their sizes are staggered: table s grows at a
// size that is 1 + s / 1024 times that of table 0. The work of growing is therefore spread evenly
// over the time in which the number of keys doubles, and no single insertion has to rehash all
// keys.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include <keel/distribute/dynamic/internal/key_functions.h>

namespace keel::distribute {

// Any number of threads may call find() while no thread changes the index.
class KeyIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;  // no position

  // Returns the position of a key, or kNone. `is_key(position)` compares the key with the key that
  // has the position.
  template <class IsKey>
  uint32_t find(uint64_t hash, const IsKey& is_key) const {
    const Table& table = tables_[key_shard(hash)];
    if (table.slots.empty()) return kNone;
    const uint32_t tag = tag_of(hash);
    for (size_t at = home(table, tag);; at = next(table, at)) {
      const Slot& slot = table.slots[at];
      if (slot.position == kNone) return kNone;
      if (slot.tag == tag && is_key(slot.position)) return slot.position;
    }
  }
  // Loads the memory that find() will read.
  void prefetch(uint64_t hash) const {
    const Table& table = tables_[key_shard(hash)];
    if (!table.slots.empty()) __builtin_prefetch(&table.slots[home(table, tag_of(hash))]);
  }
  // Returns the position of the first key that find() will compare, or kNone if there is none in
  // the memory that prefetch() has loaded.
  uint32_t first_candidate(uint64_t hash) const {
    const Table& table = tables_[key_shard(hash)];
    if (table.slots.empty()) return kNone;
    const Slot& slot = table.slots[home(table, tag_of(hash))];
    return slot.tag == tag_of(hash) ? slot.position : kNone;
  }
  // Adds a key that the index does not contain. If it throws std::bad_alloc, the index is
  // unchanged.
  void insert(uint64_t hash, uint32_t position);
  // Removes the key with this hash and position, which the index must contain.
  void erase(uint64_t hash, uint32_t position);
  // Removes all keys and frees the memory.
  void clear();

  // Returns the bytes of memory of the tables.
  int64_t bytes() const;

 private:
  struct Slot {
    uint32_t position = kNone;
    uint32_t tag = 0;
  };
  struct Table {
    std::vector<Slot> slots;
    uint32_t size = 0;
  };

  // The lower bits, because all keys of a table have the same upper bits.
  static uint32_t tag_of(uint64_t hash) { return static_cast<uint32_t>(hash); }
  // The slot at which the probe of a tag starts: tag / 2^32 of the table. Sizes need not be powers
  // of two.
  static size_t home(const Table& table, uint32_t tag) {
    return static_cast<size_t>(uint64_t{tag} * table.slots.size() >> 32U);
  }
  static size_t next(const Table& table, size_t at) {
    return at + 1 == table.slots.size() ? 0 : at + 1;
  }
  static void place(Table& table, const Slot& slot);
  static void grow(Table& table, int shard);

  std::array<Table, kKeyShards> tables_;
};

}  // namespace keel::distribute
