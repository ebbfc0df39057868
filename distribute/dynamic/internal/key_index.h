// KeyIndex: finds the positions of keys.
//
// A position is a number that the caller gives to a key, for example the index of a row. The index
// is a hash table with open addressing and linear probing. A slot has 32 bits: the position, and in
// the bits above it a part of the hash. Keys are compared in the array that the caller passes,
// which the probe of an absent key seldom reads.
//
// The table doubles when 4 of 5 slots are used. Its keys then move to the new table little by
// little: each insertion moves some, so that no single insertion moves all of them. Keys move in
// the order of their home slots, and whole runs of used slots at a time. A home slot therefore
// decides which of the two tables has a key, and a lookup reads one table only.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/distribute/dynamic/internal/slot_line.h>
#include <keel/framework/base/internal/prefetch.h>
#include <keel/framework/base/internal/reserved_memory.h>

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
    const size_t home = table.home(hash);
    size_t line = home & ~(kSlotsOfLine - 1);
    uint32_t probed = kWholeLine << (home - line);
    for (;; line = (line + kSlotsOfLine) & (table.size - 1), probed = kWholeLine) {
      const uint32_t* const slots = table.slots() + line;
      const uint32_t empty = empty_slots(slots) & probed;
      // The probe ends at the first empty slot.
      uint32_t candidates =
          equal_slots(slots, table.tag_mask(), tag) & probed & ((empty & (0 - empty)) - 1);
      for (; candidates != 0; candidates &= candidates - 1) {
        const uint32_t position =
            table.position(slots[static_cast<size_t>(std::countr_zero(candidates))]);
        if (is_key(position)) return position;
      }
      if (empty != 0) return kNone;
    }
  }
  // Loads the memory that find() and first_candidate() will read.
  void prefetch(uint64_t hash) const {
    const Table& table = table_of(hash);
    if (table.size != 0) keel::prefetch(table.slots() + table.home(hash));
  }
  // Returns the position of the first key that find() will compare, or kNone if there is none.
  uint32_t first_candidate(uint64_t hash) const {
    return find(hash, [](uint32_t) { return true; });
  }
  // Adds a key that the index does not contain. `keys.hash(position)` returns the hash of a key
  // that it contains, and `keys.prefetch(position)` loads the memory for that. If it throws
  // std::bad_alloc, the index contains the same keys as before.
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
  static constexpr size_t kMovedAhead = 48;  // keys are loaded so many slots ahead
  static constexpr size_t kFirstSlots = 16;

  // A slot is 0, or a position + 1 in the lower bits and a tag in the others.
  struct Table {
    ReservedMemory memory;
    size_t size = 0;         // number of slots, a power of two
    int position_bits = 32;  // enough for size - 1; up to 33

    uint32_t* slots() const { return reinterpret_cast<uint32_t*>(memory.data()); }
    uint32_t tag(uint64_t hash) const {
      return static_cast<uint32_t>((hash >> 32U) << position_bits);
    }
    // The bits of a slot that contain its tag.
    uint32_t tag_mask() const { return static_cast<uint32_t>(~uint64_t{0} << position_bits); }
    uint32_t position(uint32_t slot) const {
      return static_cast<uint32_t>(slot & ((uint64_t{1} << position_bits) - 1)) - 1;
    }
    uint32_t position_or_none(size_t at) const {
      return slots()[at] == 0 ? kNone : position(slots()[at]);
    }
    // The slot at which the probe of a hash starts: its lower 32 bits as a fraction of the table.
    // The order of home slots is therefore the same in tables of any size.
    size_t home(uint64_t hash) const { return (hash << 32U) >> (64 - position_bits); }
    size_t next(size_t at) const { return (at + 1) & (size - 1); }
    int64_t bytes() const { return static_cast<int64_t>(size * sizeof(uint32_t)); }
  };

  bool is_growing() const { return old_.size != 0; }
  // Returns the table that has, or would have, a key.
  const Table& table_of(uint64_t hash) const {
    return is_growing() && !has_moved(old_.home(hash)) ? old_ : table_;
  }
  Table& table_of(uint64_t hash) { return const_cast<Table&>(std::as_const(*this).table_of(hash)); }
  // Returns true if the keys of a home slot of the old table have moved.
  bool has_moved(size_t home) const { return ((home - first_) & (old_.size - 1)) < moved_; }

  static Table make_table(size_t size);
  static void place(Table& table, uint64_t hash, uint32_t position);
  void begin_growth();

  // Moves the runs of used slots that begin in the next slots of the old table.
  template <class Keys>
  void move_some(const Keys& keys) {
    const size_t mask = old_.size - 1;
    for (size_t done = 0;;) {
      const uint32_t ahead = old_.slots()[(first_ + moved_ + kMovedAhead) & mask];
      if (ahead != 0) keys.prefetch(old_.position(ahead));
      uint32_t& slot = old_.slots()[(first_ + moved_) & mask];
      // A run of used slots must not be divided. The last run may extend to slots that have moved.
      if (slot == 0 && (moved_ >= old_.size || done >= kMovedAtOnce)) break;
      if (slot != 0) {
        const uint32_t position = old_.position(slot);
        place(table_, keys.hash(position), position);
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
      const size_t home = table.home(keys.hash(table.position(table.slots()[at])));
      if (((at - home) & mask) < ((at - gap) & mask)) continue;  // its probe does not pass the gap
      table.slots()[gap] = table.slots()[at];
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
