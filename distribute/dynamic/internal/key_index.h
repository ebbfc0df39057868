// KeyIndex: finds the positions of keys.
//
// A position is a number that the caller gives to a key, for example the index of a row. The index
// is a hash table with open addressing and linear probing. Keys are compared in the array that the
// caller passes, which the probe of an absent key seldom reads.
//
// A slot has 32 bits: the position, the distance from the home slot of its key, and the bits of the
// hash that follow those of the home slot. Slot and distance give the home slot, so that entries
// move without reading their keys, which would be at random places in memory. A table of twice the
// size takes one more bit for home slots and for positions, and one fewer for the rest of the hash:
// growth needs no bits that were not stored. Only distances that do not fit into their 4 bits, a
// few in a hundred at most, require the key.
//
// The table doubles when 4 of 5 slots are used. Its keys then move to the new table little by
// little: each insertion moves some, so that no single insertion moves all of them. Keys move in
// the order of their home slots, and whole runs of used slots at a time. A home slot therefore
// decides which of the two tables has a key, and a lookup reads one table only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/distribute/dynamic/internal/key_index_table.h>

namespace keel::distribute {

// Positions must be smaller than the largest number of keys that the index has held since it was
// empty. Any number of threads may call the const members while no thread changes the index.
class KeyIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;  // no position

  // Returns the position of a key, or kNone. `is_key(position)` compares the key with the key that
  // has the position.
  template <class IsKey>
  uint32_t find(uint64_t hash, const IsKey& is_key) const {
    const Table& table = table_of(hash);
    if (table.size == 0) return kNone;
    const uint32_t tag = table.tag(hash);
    uint32_t distance = 0;
    for (size_t at = table.home(hash);; at = table.next(at), ++distance) {
      const uint32_t slot = table.slots()[at];
      if (slot == 0) return kNone;
      if (table.matches(slot, tag, distance) && is_key(table.position(slot))) {
        return table.position(slot);
      }
    }
  }
  // Loads the memory that find() and first_candidate() will read.
  void prefetch(uint64_t hash) const {
    const Table& table = table_of(hash);
    if (table.size != 0) __builtin_prefetch(table.slots() + table.home(hash));
  }
  // Returns the position of the first key that find() will compare, or kNone if there is none.
  uint32_t first_candidate(uint64_t hash) const {
    return find(hash, [](uint32_t) { return true; });
  }
  // Adds a key that the index does not contain. `keys.hash(position)` returns the hash of a key
  // that it contains, and `keys.prefetch(position)` loads the memory for that; few calls are made.
  // If it throws std::bad_alloc, the index contains the same keys as before.
  template <class Keys>
  void insert(uint64_t hash, uint32_t position, const Keys& keys) {
    if (is_growing()) {
      move_some(keys);
    } else if ((size_ + 1) * kOfSlots > table_.size * kUsed) {
      begin_growth();
    }
    place(table_of(hash), hash, position);
    ++size_;
  }
  // Removes the key with this hash and position, which the index must contain.
  template <class Keys>
  void erase(uint64_t hash, uint32_t position, const Keys& keys) {
    Table& table = table_of(hash);
    size_t gap = table.home(hash);
    while (table.position_or_none(gap) != position) gap = table.next(gap);
    close_gap(table, gap, keys);
    --size_;
  }
  // Makes an empty index so large that it does not grow before it has `keys` keys. Throws
  // std::bad_alloc, without a change, if there is not enough memory.
  void reserve(size_t keys);
  // Removes all keys and frees the memory.
  void clear() { *this = KeyIndex(); }

  // Returns the bytes of memory of the tables.
  int64_t bytes() const { return table_.bytes() + old_.bytes(); }
  // Returns the share of used slots.
  double load() const {
    return table_.size == 0 ? 0 : static_cast<double>(size_) / static_cast<double>(table_.size);
  }

 private:
  // The maximum share of used slots.
  static constexpr size_t kUsed = 4, kOfSlots = 5;
  // The number of slots that one insertion moves, at least. All have moved before the table is full
  // again, and before positions need more bits.
  static constexpr size_t kMovedAtOnce = 8;
  static constexpr size_t kMovedAhead = 64;  // memory is loaded so many slots ahead
  static constexpr size_t kFirstSlots = 16;

  using Table = KeyIndexTable;

  bool is_growing() const { return old_.size != 0; }
  // Returns the table that has, or would have, a key.
  const Table& table_of(uint64_t hash) const {
    return is_growing() && !has_moved(old_.home(hash)) ? old_ : table_;
  }
  Table& table_of(uint64_t hash) { return const_cast<Table&>(std::as_const(*this).table_of(hash)); }
  // Returns true if the keys of a home slot of the old table have moved.
  bool has_moved(size_t home) const { return ((home - first_) & (old_.size - 1)) < moved_; }

  static Table make_table(size_t size);
  static void place(Table& table, uint64_t hash, uint32_t position) {
    const size_t home = table.home(hash);
    size_t at = home;
    while (table.slots()[at] != 0) at = table.next(at);
    const size_t distance = (at - home) & (table.size - 1);
    table.slots()[at] = table.tag(hash) | table.distance_field(distance) | (position + 1);
  }
  void begin_growth();

  // Moves the runs of used slots that begin in the next slots of the old table.
  template <class Keys>
  void move_some(const Keys& keys) {
    const size_t mask = old_.size - 1;
    const size_t load = (first_ + moved_ + 2 * kMovedAhead) & mask;
    __builtin_prefetch(old_.slots() + load);
    __builtin_prefetch(table_.slots() + 2 * load, 1);
    for (size_t done = 0;;) {
      const uint32_t ahead = old_.slots()[(first_ + moved_ + kMovedAhead) & mask];
      if (ahead != 0 && !old_.knows_hash(ahead)) keys.prefetch(old_.position(ahead));
      const size_t at = (first_ + moved_) & mask;
      uint32_t& slot = old_.slots()[at];
      // A run of used slots must not be divided. The last run may extend to slots that have moved.
      if (slot == 0 && (moved_ >= old_.size || done >= kMovedAtOnce)) break;
      if (slot != 0) {
        place(table_, old_.hash(at, keys), old_.position(slot));
        slot = 0;
      }
      ++moved_;
      ++done;
    }
    if (moved_ >= old_.size) old_ = Table();
  }
  // Empties a slot. Moves later entries of the probe sequence into the gap, so that no tombstones
  // are needed.
  template <class Keys>
  static void close_gap(Table& table, size_t gap, const Keys& keys) {
    const size_t mask = table.size - 1;
    for (size_t at = table.next(gap); table.slots()[at] != 0; at = table.next(at)) {
      const size_t home = table.home(table.hash(at, keys));
      if (((at - home) & mask) < ((at - gap) & mask)) continue;  // its probe does not pass the gap
      const uint32_t slot = table.slots()[at];
      const uint32_t distance_mask = table.distance_field(table.most_distance());
      table.slots()[gap] = (slot & ~distance_mask) | table.distance_field((gap - home) & mask);
      gap = at;
    }
    table.slots()[gap] = 0;
  }

  Table table_;
  size_t size_ = 0;  // number of keys, in both tables
  // While the table grows: the previous one, the slot at which moving began, and the number of
  // slots that have moved. Slot first_ - 1 was empty.
  Table old_;
  size_t first_ = 0, moved_ = 0;
};

}  // namespace keel::distribute
