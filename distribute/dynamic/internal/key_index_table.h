// KeyIndexTable: the slots of a KeyIndex, which explains them.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include <keel/framework/base/internal/reserved_memory.h>

namespace keel::distribute {

// A slot is 0, or from its lowest bit: a position + 1, the distance from the home slot, and the
// tag. The largest distance stands for itself and for all larger ones, after which the key must
// be read.
struct KeyIndexTable {
  static constexpr int kDistanceBits = 4;

  ReservedMemory memory;
  size_t size = 0;         // number of slots, a power of two
  int position_bits = 32;  // enough for size - 1
  int distance_bits = 0;   // kDistanceBits if there are so many

  uint32_t* slots() const { return reinterpret_cast<uint32_t*>(memory.data()); }
  // The bits of the lower half of a hash below those of the home slot, as many as there is room
  // for, at their place in a slot.
  uint32_t tag(uint64_t hash) const {
    const int lower = position_bits + distance_bits;
    return static_cast<uint32_t>((hash << position_bits) >> lower << lower);
  }
  uint32_t most_distance() const { return (uint32_t{1} << distance_bits) - 1; }
  // Returns true if a used slot may have the key with this tag.
  bool matches(uint32_t slot, uint32_t tag, size_t distance) const {
    return uint64_t{slot ^ (tag | distance_field(distance))} >> position_bits == 0;
  }
  uint32_t distance_field(size_t distance) const {
    return static_cast<uint32_t>(std::min<uint64_t>(distance, most_distance()) << position_bits);
  }
  uint32_t position(uint32_t slot) const {
    return static_cast<uint32_t>(slot & ((uint64_t{1} << position_bits) - 1)) - 1;
  }
  uint32_t distance(uint32_t slot) const {
    return static_cast<uint32_t>(uint64_t{slot} >> position_bits) & most_distance();
  }
  // Returns true if a used slot gives the home slot, and enough of the hash for a table of twice
  // the size.
  bool knows_hash(uint32_t slot) const {
    return position_bits + distance_bits < 32 && distance(slot) != most_distance();
  }
  // Returns the lower half of the hash of the key in a slot. Bits that the slot does not have
  // are 0.
  template <class Keys>
  uint64_t hash(size_t at, const Keys& keys) const {
    const uint32_t slot = slots()[at];
    if (!knows_hash(slot)) return keys.hash(position(slot));
    const uint64_t home = (at - distance(slot)) & (size - 1);
    const int lower = position_bits + distance_bits;
    return home << (32 - position_bits) | (slot >> lower << lower) >> position_bits;
  }
  uint32_t position_or_none(size_t at) const {
    return slots()[at] == 0 ? 0xffffffff : position(slots()[at]);
  }
  // The slot at which the probe of a hash starts: its lower 32 bits as a fraction of the table.
  // The order of home slots is therefore the same in tables of any size.
  size_t home(uint64_t hash) const { return (hash & 0xffffffffU) * size >> 32U; }
  size_t next(size_t at) const { return (at + 1) & (size - 1); }
  int64_t bytes() const { return static_cast<int64_t>(size * sizeof(uint32_t)); }
};

}  // namespace keel::distribute
