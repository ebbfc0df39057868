#include <keel/distribute/dynamic/internal/key_index.h>

#include <utility>

namespace keel::distribute {
namespace {

// The maximum share of used slots. The expected number of probes of an absent key is 13 at 0.8 with
// linear probing, most of them in one cache line.
constexpr size_t kUsed = 4, kOfSlots = 5;

// Returns the first size of a table, from which it doubles. At any time, the sizes of the tables
// cover one octave evenly.
size_t first_slots(int shard) {
  constexpr size_t kSizes = 16;
  return kSizes + static_cast<size_t>(shard) * kSizes / kKeyShards;
}

}  // namespace

void KeyIndex::place(Table& table, const Slot& slot) {
  size_t at = home(table, slot.tag);
  while (table.slots[at].position != kNone) at = next(table, at);
  table.slots[at] = slot;
}

void KeyIndex::grow(Table& table, int shard) {
  Table larger;
  larger.slots.resize(table.slots.empty() ? first_slots(shard) : 2 * table.slots.size());
  larger.size = table.size;
  for (const Slot& slot : table.slots) {
    if (slot.position != kNone) place(larger, slot);
  }
  std::swap(table, larger);
}

void KeyIndex::insert(uint64_t hash, uint32_t position) {
  const int shard = key_shard(hash);
  Table& table = tables_[shard];
  if ((table.size + size_t{1}) * kOfSlots > table.slots.size() * kUsed) grow(table, shard);
  place(table, {.position = position, .tag = tag_of(hash)});
  ++table.size;
}

// Moves later entries of the probe sequence into the gap, so that no tombstones are needed.
void KeyIndex::erase(uint64_t hash, uint32_t position) {
  Table& table = tables_[key_shard(hash)];
  size_t gap = home(table, tag_of(hash));
  while (table.slots[gap].position != position) gap = next(table, gap);
  const size_t slots = table.slots.size();
  for (size_t at = next(table, gap); table.slots[at].position != kNone; at = next(table, at)) {
    const size_t from_home = (at + slots - home(table, table.slots[at].tag)) % slots;
    const size_t from_gap = (at + slots - gap) % slots;
    if (from_home < from_gap) continue;  // its probe does not pass the gap
    table.slots[gap] = table.slots[at];
    gap = at;
  }
  table.slots[gap] = {};
  --table.size;
}

void KeyIndex::clear() {
  for (Table& table : tables_) table = {};
}

int64_t KeyIndex::bytes() const {
  int64_t out = 0;
  for (const Table& table : tables_) {
    out += static_cast<int64_t>(table.slots.capacity() * sizeof(Slot));
  }
  return out;
}

}  // namespace keel::distribute
