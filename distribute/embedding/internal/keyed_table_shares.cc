// How the processes that share a KeyedTable put its state together, and divide it.
#include <algorithm>
#include <numeric>

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

template <class T>
void put_tensor(MessageWriter& message, const Tensor& tensor) {
  message.put(tensor.size());
  for (const T& value : tensor.data<T>()) message.put(value);
}

template <class T>
void append(MessageReader& message, std::vector<T>& out) {
  for (auto n = message.get<int64_t>(); n > 0; --n) out.push_back(message.get<T>());
}

// Returns the values of one part of all processes, one process after the other.
template <class T>
Tensor joined(std::span<MessageReader> messages, const Shape& row) {
  std::vector<T> out;
  for (MessageReader& message : messages) append(message, out);
  return Tensor::from(
      out, row.rank() == 0 ? Shape{std::ssize(out)} : Shape{std::ssize(out) / row[0], row[0]});
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

}  // namespace

template <class Key>
DynamicTableState KeyedTableOf<Key>::state() const {
  DynamicTableState out = local_state();
  if (peers().alone()) return out;
  out.statistics = statistics();
  MessageWriter mine;
  put_tensor<Key>(mine, out.keys);
  put_tensor<float>(mine, out.rows);
  for (const auto& [name, slot] : out.slots) put_tensor<float>(mine, slot);
  for (const auto part : kIntegers) put_tensor<int64_t>(mine, out.*part);
  put_tensor<Key>(mine, out.pending_keys);
  for (const auto part : kPendingIntegers) put_tensor<int64_t>(mine, out.*part);
  mine.put_all(std::span<const uint8_t>(out.sketch));
  const auto messages = peers().all_gather("state of a dynamic table", mine);
  std::vector<MessageReader> readers = readers_of(messages);
  const Shape row = {options_.dim};
  out.keys = joined<Key>(readers, {});
  out.rows = joined<float>(readers, row);
  for (auto& [name, slot] : out.slots) slot = joined<float>(readers, {slot.dim(1)});
  for (const auto part : kIntegers) out.*part = joined<int64_t>(readers, {});
  out.pending_keys = joined<Key>(readers, {});
  for (const auto part : kPendingIntegers) out.*part = joined<int64_t>(readers, {});
  // Each process counts in the cells of its own shards.
  const size_t of_shard = out.sketch.size() / kKeyShards;
  std::vector<uint8_t> cells(out.sketch.size());
  for (int p = 0; p < peers().size(); ++p) {
    readers[p].get_all(std::span(cells));
    for (int shard = 0; shard < kKeyShards; ++shard) {
      if (peers().owner_of_shard(shard) != p) continue;
      std::copy_n(cells.begin() + static_cast<int64_t>(shard * of_shard), of_shard,
                  out.sketch.begin() + static_cast<int64_t>(shard * of_shard));
    }
  }
  select<Key>(out, ascending<Key>(out.keys), ascending<Key>(out.pending_keys));
  return out;
}

// Returns what this process holds of a whole table. The counters are those of all processes
// together, so that one of them holds the totals.
template <class Key>
DynamicTableState KeyedTableOf<Key>::owned_part(const DynamicTableState& state) const {
  const auto owned = [this](const Tensor& keys) {
    std::vector<int64_t> out;
    const auto values = keys.data<Key>();
    for (size_t i = 0; i < values.size(); ++i) {
      if (peers().owns(key_hash(values[i]))) out.push_back(static_cast<int64_t>(i));
    }
    return out;
  };
  DynamicTableState out = state;
  select<Key>(out, owned(state.keys), owned(state.pending_keys));
  if (peers().rank() != 0) out.statistics = {.updates = state.statistics.updates};
  return out;
}

#define KEEL_INSTANTIATE(Key)                                  \
  template DynamicTableState KeyedTableOf<Key>::state() const; \
  template DynamicTableState KeyedTableOf<Key>::owned_part(const DynamicTableState&) const;
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
