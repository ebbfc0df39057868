#include <keel/distribute/dynamic/internal/key_index.h>

#include <bit>

namespace keel::distribute {

KeyIndex::Table KeyIndex::make_table(size_t size) {
  Table out;
  out.memory = ReservedMemory(size * sizeof(uint32_t));
  out.memory.grow(size * sizeof(uint32_t));
  out.size = size;
  out.position_bits = std::bit_width(size - 1);
  return out;
}

void KeyIndex::reserve(size_t keys) {
  size_t size = kFirstSlots;
  while (keys * kOfSlots > size * kUsed) size *= 2;
  table_ = make_table(size);
}

void KeyIndex::place(Table& table, uint64_t hash, uint32_t position) {
  const size_t home = table.home(hash);
  size_t line = home & ~(kSlotsOfLine - 1);
  uint32_t empty = empty_slots(table.slots() + line) & kWholeLine << (home - line);
  while (empty == 0) {
    line = (line + kSlotsOfLine) & (table.size - 1);
    empty = empty_slots(table.slots() + line);
  }
  table.slots()[line + static_cast<size_t>(std::countr_zero(empty))] =
      table.tag(hash) | (position + 1);
}

void KeyIndex::begin_growth() {
  Table larger = make_table(table_.size == 0 ? kFirstSlots : 2 * table_.size);
  old_ = std::exchange(table_, std::move(larger));
  moved_ = 0;
  first_ = 0;
  if (!is_growing()) return;
  // A run of used slots that crosses the end of the table moves last.
  while (old_.slots()[(first_ - 1) & (old_.size - 1)] != 0) ++first_;
}

}  // namespace keel::distribute
