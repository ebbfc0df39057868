// The state of a KeyedTable: of the whole table, and the share that one process saves.
#include <algorithm>
#include <numeric>

#include <keel/distribute/dynamic/internal/shard_order.h>
#include <keel/distribute/dynamic/internal/state_rows.h>
#include <keel/distribute/embedding/internal/keyed_table_of.h>
#include <keel/framework/base/errors.h>

namespace keel::distribute {
namespace {

constexpr Tensor DynamicTableState::* kIntegers[] = {
    &DynamicTableState::count, &DynamicTableState::last, &DynamicTableState::born};
constexpr Tensor DynamicTableState::* kPendingIntegers[] = {&DynamicTableState::pending_count,
                                                            &DynamicTableState::pending_last};

// Replaces all parts of a state that have one row per key by some of their rows.
template <class Key>
void select(DynamicTableState& state, std::span<const int64_t> rows,
            std::span<const int64_t> pending) {
  state.keys = state_rows<Key>(state.keys, rows);
  state.rows = state_rows<float>(state.rows, rows);
  for (auto& [name, slot] : state.slots) slot = state_rows<float>(slot, rows);
  for (const auto part : kIntegers) state.*part = state_rows<int64_t>(state.*part, rows);
  state.pending_keys = state_rows<Key>(state.pending_keys, pending);
  for (const auto part : kPendingIntegers) state.*part = state_rows<int64_t>(state.*part, pending);
}

// Returns the positions of keys in ascending order.
template <class Key>
std::vector<int64_t> ascending(const Tensor& keys) {
  const auto values = keys.data<Key>();
  std::vector<int64_t> out(values.size());
  std::iota(out.begin(), out.end(), 0);
  std::ranges::sort(out, {}, [&](int64_t i) -> const Key& { return values[i]; });
  return out;
}

int64_t number_of(const KeyUse& use, SavedUse what) {
  switch (what) {
    case SavedUse::kLast:
      return use.last;
    case SavedUse::kBorn:
      return use.born;
    case SavedUse::kCount:
      break;
  }
  return use.count;
}

}  // namespace

Tensor KeyedTable::gathered(const Tensor& mine) const {
  if (peers().alone()) return mine;
  const bool strings = mine.dtype() == DType::kString;
  MessageWriter message;
  message.put(mine.dim(0));
  if (strings) {
    for (const std::string& text : mine.data<std::string>()) message.put(text);
  } else {
    message.put_all(mine.raw());
  }
  const auto messages = peers().all_gather("rows of a dynamic table", message);
  std::vector<MessageReader> readers = readers_of(messages);
  std::vector<int64_t> rows;
  for (MessageReader& reader : readers) rows.push_back(reader.get<int64_t>());
  const int64_t all = std::accumulate(rows.begin(), rows.end(), int64_t{0});
  Tensor out = Tensor::uninitialized(mine.shape().with(0, all), mine.dtype());
  if (out.size() == 0) return out;
  if (strings) {
    auto to = out.mutable_data<std::string>().begin();
    for (size_t p = 0; p < readers.size(); ++p) {
      for (int64_t i = 0; i < rows[p]; ++i) *to++ = readers[p].get<std::string>();
    }
    return out;
  }
  std::span<std::byte> rest = out.mutable_raw();
  const size_t row_bytes = rest.size() / all;
  for (size_t p = 0; p < readers.size(); ++p) {
    const std::span<std::byte> to = rest.first(rows[p] * row_bytes);
    readers[p].get_all(to);
    rest = rest.subspan(to.size());
  }
  return out;
}

Tensor KeyedTable::fallback_rows(int part) const {
  const int64_t width = shard_->width(part);
  Tensor out = Tensor::uninitialized({first_key_row() - 1, width}, DType::kFloat32);
  float* to = out.mutable_data<float>().data();
  for (int64_t row = 1; row < first_key_row(); ++row, to += width) {
    shard_->read(part, row, to);
  }
  return out;
}

template <class Key>
DynamicTableState KeyedTableOf<Key>::state() const {
  const auto positions_of = [this](SavedIds of) {
    return peers().alone() ? directory(of).sorted() : directory(of).positions();
  };
  const std::vector<uint32_t> positions = positions_of(SavedIds::kRows);
  const std::vector<uint32_t> waiting = positions_of(SavedIds::kPending);
  const auto uses = [&](SavedUse what) {
    return gathered(uses_at(SavedIds::kRows, what, positions));
  };
  const auto pending_uses = [&](SavedUse what) {
    return gathered(uses_at(SavedIds::kPending, what, waiting));
  };
  DynamicTableState out = {.keys = gathered(keys_at(SavedIds::kRows, positions)),
                           .rows = gathered(rows_at(0, positions)),
                           .slots = {},
                           .count = uses(SavedUse::kCount),
                           .last = uses(SavedUse::kLast),
                           .born = uses(SavedUse::kBorn),
                           .pending_keys = gathered(keys_at(SavedIds::kPending, waiting)),
                           .pending_count = pending_uses(SavedUse::kCount),
                           .pending_last = pending_uses(SavedUse::kLast),
                           .sketch = gathered(saved_sketch().second).template to_vector<uint8_t>(),
                           .fallback = fallback_rows(0),
                           .fallback_slots = {},
                           .statistics = statistics(),
                           .clock = clock_,
                           .stream = stream()};
  for (size_t slot = 0; slot < options_.slots.size(); ++slot) {
    const std::string& name = options_.slots[slot].name;
    const auto part = static_cast<int>(slot) + 1;
    out.slots.emplace(name, gathered(rows_at(part, positions)));
    out.fallback_slots.emplace(name, fallback_rows(part));
  }
  if (!peers().alone()) {
    select<Key>(out, ascending<Key>(out.keys), ascending<Key>(out.pending_keys));
  }
  return out;
}

template <class Key>
std::pair<SavedRange, SavedRange> KeyedTableOf<Key>::saved_ranges() const {
  const Tensor mine = Tensor::from<int64_t>({directory_.size(), filter_.pending().size()}, {1, 2});
  const Tensor sizes = gathered(mine);
  const auto range = [&](int list) {
    SavedRange out;
    for (int64_t p = 0; p < sizes.dim(0); ++p) {
      const int64_t size = sizes.data<int64_t>()[2 * p + list];
      if (p < peers().rank()) out.first += size;
      if (p <= peers().rank()) out.end += size;
      out.total += size;
    }
    return out;
  };
  return {range(0), range(1)};
}

template <class Key>
Tensor KeyedTableOf<Key>::shard_starts() const {
  Tensor mine = Tensor::zeros({1, kKeyShards}, DType::kInt64);
  const auto counts = mine.template mutable_data<int64_t>();
  for (const uint32_t position : directory_.positions()) {
    ++counts[key_shard(key_hash(directory_.key(position)))];
  }
  const Tensor all = gathered(mine);
  std::vector<int64_t> out(kKeyShards + 1);
  for (int64_t i = 0; i < all.size(); ++i) out[i % kKeyShards + 1] += all.data<int64_t>()[i];
  std::partial_sum(out.begin(), out.end(), out.begin());
  return Tensor::from(out, {std::ssize(out)});
}

template <class Key>
std::vector<uint32_t> KeyedTableOf<Key>::saved_order(SavedIds of) const {
  return shard_order(directory(of));
}

template <class Key>
Tensor KeyedTableOf<Key>::keys_at(SavedIds of, std::span<const uint32_t> positions) const {
  return key_tensor(directory(of), positions);
}

template <class Key>
Tensor KeyedTableOf<Key>::uses_at(SavedIds of, SavedUse what,
                                  std::span<const uint32_t> positions) const {
  constexpr size_t kAhead = 32;
  const KeyDirectory<Key>& from = directory(of);
  Tensor out = Tensor::uninitialized({std::ssize(positions)}, DType::kInt64);
  const auto to = out.template mutable_data<int64_t>();
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i + kAhead < positions.size()) from.prefetch_use(positions[i + kAhead]);
    to[i] = number_of(from.use(positions[i]), what);
  }
  return out;
}

template <class Key>
std::pair<SavedRange, Tensor> KeyedTableOf<Key>::saved_sketch() const {
  if (!filter_.sketch()) return {{}, Tensor::zeros({0}, DType::kUint8)};
  const std::vector<uint8_t>& cells = filter_.sketch()->cells();
  const int64_t of_shard = std::ssize(cells) / kKeyShards;
  const auto [first, end] = peers().owned_shards();
  const SavedRange range = {
      .first = first * of_shard, .end = end * of_shard, .total = std::ssize(cells)};
  const std::vector<uint8_t> mine(cells.begin() + range.first, cells.begin() + range.end);
  return {range, Tensor::from(mine, {std::ssize(mine)})};
}

#define KEEL_INSTANTIATE(Key)                                                                      \
  template DynamicTableState KeyedTableOf<Key>::state() const;                                     \
  template std::pair<SavedRange, SavedRange> KeyedTableOf<Key>::saved_ranges() const;              \
  template Tensor KeyedTableOf<Key>::shard_starts() const;                                         \
  template std::vector<uint32_t> KeyedTableOf<Key>::saved_order(SavedIds) const;                   \
  template Tensor KeyedTableOf<Key>::keys_at(SavedIds, std::span<const uint32_t>) const;           \
  template Tensor KeyedTableOf<Key>::uses_at(SavedIds, SavedUse, std::span<const uint32_t>) const; \
  template std::pair<SavedRange, Tensor> KeyedTableOf<Key>::saved_sketch() const;
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
