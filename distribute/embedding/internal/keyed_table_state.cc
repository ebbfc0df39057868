// How a KeyedTable is saved and restored.
#include <algorithm>
#include <limits>

#include <keel/distribute/embedding/internal/keyed_table_of.h>
#include <keel/framework/base/errors.h>

namespace keel::distribute {
namespace {

template <class Key, class Field>
Tensor int64_field(const KeyDirectory<Key>& of, std::span<const uint32_t> positions, Field field) {
  std::vector<int64_t> out;
  out.reserve(positions.size());
  for (const uint32_t position : positions) {
    out.push_back(static_cast<int64_t>(of.use(position).*field));
  }
  return Tensor::from(out, {std::ssize(out)});
}

const float* row_of(const Tensor& rows, int64_t row) {
  return rows.data<float>().data() + row * rows.dim(1);
}

}  // namespace

template <class Key>
DynamicTableState KeyedTableOf<Key>::local_state() const {
  const std::vector<uint32_t> positions = directory_.sorted();
  const KeyDirectory<Key>& pending = filter_.pending();
  const std::vector<uint32_t> waiting = pending.sorted();
  DynamicTableState out = {.keys = key_tensor(directory_, positions),
                           .rows = rows_at(0, positions),
                           .slots = {},
                           .count = int64_field(directory_, positions, &KeyUse::count),
                           .last = int64_field(directory_, positions, &KeyUse::last),
                           .born = int64_field(directory_, positions, &KeyUse::born),
                           .pending_keys = key_tensor(pending, waiting),
                           .pending_count = int64_field(pending, waiting, &KeyUse::count),
                           .pending_last = int64_field(pending, waiting, &KeyUse::last),
                           .fallback = {},
                           .fallback_slots = {},
                           .statistics = local_statistics(),
                           .clock = clock_,
                           .stream = initial_->stream()};
  if (filter_.sketch()) out.sketch = filter_.sketch()->cells();
  for (int part = 0; part <= static_cast<int>(options_.slots.size()); ++part) {
    const int64_t width = shard_->width(part);
    Tensor fallback = Tensor::uninitialized({first_key_row() - 1, width}, DType::kFloat32);
    float* to = fallback.template mutable_data<float>().data();
    for (int64_t row = 1; row < first_key_row(); ++row, to += width) {
      shard_->read(part, row, to);
    }
    if (part == 0) {
      out.fallback = std::move(fallback);
    } else {
      const std::string& slot = options_.slots[part - 1].name;
      out.slots.emplace(slot, rows_at(part, positions));
      out.fallback_slots.emplace(slot, std::move(fallback));
    }
  }
  return out;
}

// Sets a row from row `index` of saved values. Slots that were not saved keep their initial values.
void KeyedTable::write_parts(int64_t row, int64_t index, const Tensor& rows,
                             const std::map<std::string, Tensor>& slots) {
  shard_->write(0, row, row_of(rows, index));
  for (size_t slot = 0; slot < options_.slots.size(); ++slot) {
    const auto found = slots.find(options_.slots[slot].name);
    if (found == slots.end()) continue;
    shard_->write(static_cast<int>(slot) + 1, row, row_of(found->second, index));
  }
}

// Throws ValueError unless a saved table has the sizes and types of this one.
void KeyedTable::check_state(const DynamicTableState& state) const {
  const auto refuse = [this](const std::string& problem) {
    throw ValueError("restore: table '", options_.name, "' ", problem);
  };
  const bool strings = options_.dynamic.key == KeyType::kString;
  if (state.keys.dtype() != (strings ? DType::kString : DType::kInt64)) {
    refuse(str("has ids of type ", strings ? "string" : "int64", ", the saved table of type ",
               state.keys.dtype()));
  }
  const int64_t n = state.keys.size();
  const auto check_rows = [&](const std::string& what, const Tensor& rows, int64_t count,
                              const std::string& slot_name = {}) {
    const auto slot = std::ranges::find(options_.slots, slot_name, &Slot::name);
    const bool per_row = slot != options_.slots.end() && slot->per_row;
    const Shape shape = {count, per_row ? 1 : options_.dim};
    if (rows.dtype() == DType::kFloat32 && rows.shape() == shape) return;
    refuse(str("requires ", what, " of type float32 and shape ", shape, ", the saved table has ",
               rows.dtype(), " ", rows.shape()));
  };
  check_rows("rows", state.rows, n);
  for (const auto& [name, slot] : state.slots) check_rows("slot " + name, slot, n, name);
  if (state.fallback.rank() != 2) refuse("requires fallback rows of rank 2");
  const int64_t fallback = state.fallback.dim(0);
  check_rows("fallback rows", state.fallback, fallback);
  for (const auto& [name, slot] : state.fallback_slots) {
    check_rows("fallback slot " + name, slot, fallback, name);
  }
  const int64_t pending = state.pending_keys.size();
  if (state.pending_keys.dtype() != state.keys.dtype()) refuse("has pending ids of another type");
  for (const Tensor* const numbers : {&state.count, &state.last, &state.born}) {
    if (numbers->dtype() != DType::kInt64 || numbers->size() != n) {
      refuse(str("requires int64 counts and times of ", n, " ids"));
    }
  }
  for (const Tensor* const numbers : {&state.pending_count, &state.pending_last}) {
    if (numbers->dtype() != DType::kInt64 || numbers->size() != pending) {
      refuse(str("requires int64 counts and times of ", pending, " pending ids"));
    }
  }
  // Times are subtracted and counts are stored in 32 bits.
  const auto check_range = [&](const Tensor& numbers, int64_t last, const char* what) {
    const auto outside = [last](int64_t value) { return value < 0 || value > last; };
    if (std::ranges::any_of(numbers.data<int64_t>(), outside)) {
      refuse(str("requires ", what, " in [0, ", last, "]; the saved table is damaged"));
    }
  };
  const int64_t now = std::max(state.clock, state.statistics.updates);
  if (state.clock < 0 || state.statistics.updates < 0)
    refuse("requires a clock that is not negative");
  for (const Tensor* const counts : {&state.count, &state.pending_count}) {
    check_range(*counts, std::numeric_limits<uint32_t>::max(), "counts");
  }
  for (const Tensor* const times : {&state.last, &state.born, &state.pending_last}) {
    check_range(*times, now, "times");
  }
}

template <class Key>
void KeyedTableOf<Key>::check_distinct(const Tensor& keys) const {
  const auto ids = keys.data<Key>();
  for (size_t i = 1; i < ids.size(); ++i) {
    if (ids[i - 1] < ids[i]) continue;
    throw ValueError("restore: the ids of table '", options_.name,
                     "' must ascend and be distinct, received ", ids[i], " after ", ids[i - 1]);
  }
}

template <class Key>
void KeyedTableOf<Key>::restore_keys(const DynamicTableState& state) {
  const auto keys = state.keys.data<Key>();
  const auto count = state.count.data<int64_t>(), last = state.last.data<int64_t>(),
             born = state.born.data<int64_t>();
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto index = static_cast<int64_t>(i);
    const int64_t row =
        create_row(keys[i], key_hash(keys[i]),
                   {.last = last[i], .born = born[i], .count = static_cast<uint32_t>(count[i])});
    write_parts(row, index, state.rows, state.slots);
  }
}

template <class Key>
void KeyedTableOf<Key>::restore_filter(const DynamicTableState& state) {
  if (options_.dynamic.admission.kind == Admission::Kind::kCount) {
    const auto keys = state.pending_keys.data<Key>();
    const auto count = state.pending_count.data<int64_t>(),
               last = state.pending_last.data<int64_t>();
    for (size_t i = 0; i < keys.size(); ++i)
      filter_.observe(keys[i], key_hash(keys[i]), count[i], last[i]);
  }
  if (filter_.sketch() && filter_.sketch()->cells().size() == state.sketch.size()) {
    filter_.sketch()->restore(state.sketch);
  }
}

// Fills an empty table.
template <class Key>
void KeyedTableOf<Key>::restore_owned(const DynamicTableState& state) {
  restore_keys(state);
  restore_filter(state);
  if (state.fallback.dim(0) == first_key_row() - 1) {
    for (int64_t row = 1; row < first_key_row(); ++row) {
      write_parts(row, row - 1, state.fallback, state.fallback_slots);
    }
  }
  statistics_ = state.statistics;
  inference_looked_up_ = state.statistics.inference_looked_up;
  inference_hits_ = state.statistics.inference_hits;
  clock_ = state.clock;
}

template <class Key>
void KeyedTableOf<Key>::check_restorable(const DynamicTableState& state) const {
  check_state(state);
  check_distinct(state.keys);
  check_distinct(state.pending_keys);
  const int64_t capacity = options_.dynamic.capacity;
  if (capacity > 0 && state.keys.size() > capacity &&
      options_.dynamic.eviction.policy == Eviction::Policy::kNone) {
    throw ValueError("restore: ", state.keys.size(), " rows do not fit into table '", options_.name,
                     "' with capacity ", capacity,
                     " and no eviction policy; increase capacity or set Eviction::lru or lfu");
  }
}

// Fills another table and takes over its parts, so that a failure leaves this one unchanged.
template <class Key>
void KeyedTableOf<Key>::restore(const DynamicTableState& state) {
  check_not_in_callback("restore");
  check_restorable(state);
  KeyedTableOf restored(options_);
  restored.shard_->set_initial_slots(shard_->initial_slots());
  InitialRows initial = *initial_;
  initial.set_stream(state.stream);
  restored.set_initial_rows(std::move(initial));
  restored.restore_owned(peers().alone() ? state : owned_part(state));
  restored.callbacks_ = callbacks_;
  const int64_t capacity = options_.dynamic.capacity;
  restored.refresh_size();
  if (capacity > 0 && state.keys.size() > capacity) {
    restored.remove_lowest(capacity, EvictionReason::kCapacity,
                           &DynamicTableStatistics::evicted_capacity);
  }
  take_over(restored);
  report_removed();
}

template <class Key>
void KeyedTableOf<Key>::take_over(KeyedTableOf& other) {
  std::swap(directory_, other.directory_);
  std::swap(filter_, other.filter_);
  std::swap(shard_, other.shard_);
  std::swap(initial_, other.initial_);
  std::swap(removed_, other.removed_);
  set_rounding_numbers();
  statistics_ = other.statistics_;
  inference_looked_up_ = other.inference_looked_up_.load();
  inference_hits_ = other.inference_hits_.load();
  clock_ = other.clock_;
  size_of_all_ = other.size_of_all_;
  plan_.reset();
  version_ = next_version();
}

#define KEEL_INSTANTIATE(Key)                                                        \
  template DynamicTableState KeyedTableOf<Key>::local_state() const;                 \
  template void KeyedTableOf<Key>::restore_keys(const DynamicTableState&);           \
  template void KeyedTableOf<Key>::restore_filter(const DynamicTableState&);         \
  template void KeyedTableOf<Key>::restore_owned(const DynamicTableState&);          \
  template void KeyedTableOf<Key>::check_distinct(const Tensor&) const;              \
  template void KeyedTableOf<Key>::check_restorable(const DynamicTableState&) const; \
  template void KeyedTableOf<Key>::take_over(KeyedTableOf<Key>&);                    \
  template void KeyedTableOf<Key>::restore(const DynamicTableState&);
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
