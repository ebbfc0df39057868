// How a KeyedTable is restored.
#include <algorithm>
#include <limits>
#include <numeric>

#include <keel/distribute/embedding/internal/keyed_table_of.h>
#include <keel/framework/base/errors.h>

namespace keel::distribute {
namespace {

constexpr int64_t kIdsAtOnce = 1 << 18;
constexpr int64_t kBytesAtOnce = 16 << 20;

template <class... What>
[[noreturn]] void throw_damaged(const SavedPart& part, const What&... what) {
  if (part.place.empty()) throw ValueError("restore: ", what...);
  throw IoError(part.place, ": ", what..., "; the file is damaged, restore it from a copy");
}

// Reads ids with their counts and times, and checks them.
template <class Key>
class IdReader {
 public:
  // `starts` are the first rows of the key shards, or empty; times must be at most `now`.
  IdReader(const SavedPart& keys, const SavedPart& count, const SavedPart& last,
           const SavedPart& born, bool by_shard, std::span<const int64_t> starts, int64_t now)
      : keys_(keys),
        count_(count),
        last_(last),
        born_(born),
        by_shard_(by_shard),
        starts_(starts),
        now_(now) {}

  // Reads the ids of the rows [begin, end), which follow those of the previous call.
  void read(int64_t begin, int64_t end) {
    ids_ = keys_ ? keys_.read(begin, end) : numbers(begin, end);
    hashes.clear();
    for (const Key& key : keys()) hashes.push_back(key_hash(key));
    check_order(begin);
    uses.assign(end - begin, {});
    constexpr int64_t kMostCount = std::numeric_limits<uint32_t>::max();
    read_numbers(count_, begin, end, kMostCount, "counts",
                 [](KeyUse& use, int64_t value) { use.count = static_cast<uint32_t>(value); });
    read_numbers(last_, begin, end, now_, "times",
                 [](KeyUse& use, int64_t value) { use.last = value; });
    read_numbers(born_, begin, end, now_, "times",
                 [](KeyUse& use, int64_t value) { use.born = value; });
  }
  std::span<const Key> keys() const { return ids_.data<Key>(); }
  std::vector<uint64_t> hashes;
  std::vector<KeyUse> uses;

 private:
  static Tensor numbers(int64_t begin, int64_t end) {
    if constexpr (std::is_same_v<Key, int64_t>) {
      std::vector<int64_t> out(end - begin);
      std::iota(out.begin(), out.end(), begin);
      return Tensor::from(out, {end - begin});
    } else {
      throw ValueError("restore: string ids require saved ids");
    }
  }

  void check_order(int64_t first) {
    const std::span<const Key> all = keys();
    for (size_t i = 0; i < all.size(); ++i) {
      const int shard = by_shard_ ? key_shard(hashes[i]) : 0;
      const int64_t row = first + static_cast<int64_t>(i);
      if (before_ && !(shard > shard_before_ || (shard == shard_before_ && *before_ < all[i]))) {
        throw_damaged(keys_, "ids must ascend", by_shard_ ? " in key shards" : "",
                      " and be distinct, received ", all[i], " after ", *before_);
      }
      if (!starts_.empty() && (row < starts_[shard] || row >= starts_[shard + 1])) {
        throw_damaged(keys_, "id ", all[i], " in row ", row, " belongs to key shard ", shard,
                      ", which has the rows [", starts_[shard], ", ", starts_[shard + 1], ")");
      }
      before_ = all[i];
      shard_before_ = shard;
    }
  }

  template <class Set>
  void read_numbers(const SavedPart& from, int64_t begin, int64_t end, int64_t most,
                    const char* what, const Set& set) {
    if (!from) return;
    const Tensor values = from.read(begin, end);
    const auto numbers = values.data<int64_t>();
    for (size_t i = 0; i < uses.size(); ++i) {
      if (numbers[i] < 0 || numbers[i] > most) {
        throw_damaged(from, what, " must be in [0, ", most, "], received ", numbers[i]);
      }
      set(uses[i], numbers[i]);
    }
  }

  const SavedPart &keys_, &count_, &last_, &born_;
  const bool by_shard_;
  const std::span<const int64_t> starts_;
  const int64_t now_;
  Tensor ids_;
  std::optional<Key> before_;
  int shard_before_ = 0;
};

// Returns the first rows of the key shards and the number of rows.
std::vector<int64_t> checked_starts(const SavedPart& shards, int64_t rows) {
  if (!shards) return {};
  const Shape shape = {kKeyShards + 1};
  if (shards.spec.shape != shape || shards.spec.dtype != DType::kInt64) {
    throw_damaged(shards, "must be int64 ", shape, ", received ", shards.spec.dtype, " ",
                  shards.spec.shape);
  }
  std::vector<int64_t> out = shards.read(0, kKeyShards + 1).to_vector<int64_t>();
  if (out.front() != 0 || out.back() != rows || !std::ranges::is_sorted(out)) {
    throw_damaged(shards, "the first rows of key shards must ascend from 0 to ", rows);
  }
  return out;
}

int64_t time_of(const SavedTable& saved) { return std::max(saved.clock, saved.statistics.updates); }

}  // namespace

template <class Key>
struct KeyedTableOf<Key>::Prepared final : PreparedTable {
  Prepared(const SavedTable& of, const DynamicVocabulary& dynamic)
      : saved(of), filter(dynamic.admission) {
    if (dynamic.eviction.options.ttl > 0) directory.track_expiry();
  }

  const SavedTable saved;
  KeyDirectory<Key> directory;
  AdmissionFilter<Key> filter;
  int64_t first = 0, end = 0;                 // the saved rows to read
  std::optional<std::vector<int64_t>> owned;  // those that this process holds; unset: all
};

// Throws unless a saved table has the sizes and types of this one.
void KeyedTable::check_saved(const SavedTable& saved) const {
  const auto refuse = [this](const auto&... problem) {
    throw ValueError("restore: table '", options_.name, "' ", problem...);
  };
  const int64_t n = saved.rows.rows();
  const bool strings = options_.dynamic.key == KeyType::kString;
  const int64_t capacity = options_.dynamic.capacity;
  const DType of_keys = strings ? DType::kString : DType::kInt64;
  if (!saved.keys) {
    const auto refuse_static = [&](const auto&... why) {
      throw ValueError("restore: the ", n, " rows of a static table cannot become rows of table '",
                       options_.name, "', ", why...);
    };
    if (strings) refuse_static("whose ids are strings; use assign_rows for them");
    if (capacity > 0 && n > capacity) {
      refuse_static("which has capacity ", capacity, "; increase capacity");
    }
  } else if (saved.keys.spec.dtype != of_keys) {
    refuse("has ids of type ", of_keys, ", the saved table of type ", saved.keys.spec.dtype);
  }
  const auto check_rows = [&](const std::string& what, const TensorSpec& spec, int64_t count,
                              const std::string& slot_name = {}) {
    const auto slot = std::ranges::find(options_.slots, slot_name, &Slot::name);
    const bool per_row = slot != options_.slots.end() && slot->per_row;
    const Shape shape = {count, per_row ? 1 : options_.dim};
    if (spec.dtype == DType::kFloat32 && spec.shape == shape) return;
    refuse("requires ", what, " of type float32 and shape ", shape, ", the saved table has ",
           spec.dtype, " ", spec.shape);
  };
  check_rows("rows", saved.rows.spec, n);
  // Parts of one table with different numbers of rows are damage.
  const auto check_list = [](const SavedPart& part, DType type, int64_t count) {
    const Shape shape = {count};
    if (!part || (part.spec.dtype == type && part.spec.shape == shape)) return;
    throw_damaged(part, "must be ", type, " ", shape, " as other parts of the table, received ",
                  part.spec.dtype, " ", part.spec.shape);
  };
  check_list(saved.keys, of_keys, n);
  for (const SavedPart* const part : {&saved.count, &saved.last, &saved.born}) {
    check_list(*part, DType::kInt64, n);
  }
  for (const auto& [name, slot] : saved.slots) {
    if (slot.rows() != n && slot.spec.shape.rank() == 2) {
      throw_damaged(slot, "must have ", n, " rows as other parts of the table, received ",
                    slot.spec.shape);
    }
    check_rows("slot " + name, slot.spec, n, name);
  }
  const int64_t pending = saved.pending_keys.rows();
  check_list(saved.pending_keys, of_keys, pending);
  check_list(saved.pending_count, DType::kInt64, pending);
  check_list(saved.pending_last, DType::kInt64, pending);
  if (saved.fallback) {
    if (saved.fallback.rank() != 2) refuse("requires fallback rows of rank 2");
    const int64_t fallback = saved.fallback.dim(0);
    check_rows("fallback rows", saved.fallback.spec(), fallback);
    for (const auto& [name, slot] : saved.fallback_slots) {
      check_rows("fallback slot " + name, slot.spec(), fallback, name);
    }
  }
  if (saved.clock < 0 || saved.statistics.updates < 0) {
    refuse("requires a clock that is not negative");
  }
  if (capacity > 0 && n > capacity && options_.dynamic.eviction.policy == Eviction::Policy::kNone) {
    throw ValueError("restore: ", n, " rows do not fit into table '", options_.name,
                     "' with capacity ", capacity,
                     " and no eviction policy; increase capacity or set Eviction::lru or lfu");
  }
}

// Reads the ids whose rows this process will hold.
template <class Key>
void KeyedTableOf<Key>::read_keys(Prepared& to) const {
  const SavedTable& saved = to.saved;
  const int64_t n = saved.rows.rows();
  const std::vector<int64_t> starts = checked_starts(saved.shards, n);
  to.end = n;
  if (!starts.empty()) {
    const auto [first, end] = peers().owned_shards();
    to.first = starts[first];
    to.end = starts[end];
  } else if (!peers().alone()) {
    to.owned.emplace();
  }
  if (!to.owned) to.directory.reserve(to.end - to.first);
  IdReader<Key> ids(saved.keys, saved.count, saved.last, saved.born, saved.by_shard, starts,
                    time_of(saved));
  std::vector<Key> kept;
  for (int64_t begin = to.first; begin < to.end; begin += kIdsAtOnce) {
    ids.read(begin, std::min(begin + kIdsAtOnce, to.end));
    if (!to.owned) {
      to.directory.append(ids.keys(), ids.hashes, ids.uses);
      continue;
    }
    const std::span<const Key> keys = ids.keys();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (!peers().owns(ids.hashes[i])) continue;
      to.directory.add(keys[i], ids.hashes[i], ids.uses[i]);
      to.owned->push_back(begin + static_cast<int64_t>(i));
    }
  }
}

// Pending ids are kept if ids are counted. An id that has a row is not pending.
template <class Key>
void KeyedTableOf<Key>::read_pending(Prepared& to) const {
  const Admission& admission = options_.dynamic.admission;
  if (admission.kind != Admission::Kind::kCount || admission.occurrences == 1) return;
  KeyDirectory<Key>& pending = to.filter.pending();
  const auto add = [&](const Key& key, uint64_t hash, const KeyUse& use) {
    if (to.directory.find(key, hash) == KeyIndex::kNone) pending.add(key, hash, use);
  };
  const SavedTable& saved = to.saved;
  if (!saved.pending_keys) {
    for (const uint32_t position : filter_.pending().positions()) {
      const Key& key = filter_.pending().key(position);
      add(key, key_hash(key), filter_.pending().use(position));
    }
    return;
  }
  IdReader<Key> ids(saved.pending_keys, saved.pending_count, saved.pending_last, saved.pending_last,
                    saved.by_shard, {}, time_of(saved));
  const int64_t n = saved.pending_keys.rows();
  for (int64_t begin = 0; begin < n; begin += kIdsAtOnce) {
    ids.read(begin, std::min(begin + kIdsAtOnce, n));
    const std::span<const Key> keys = ids.keys();
    for (size_t i = 0; i < keys.size(); ++i) {
      if (peers().owns(ids.hashes[i])) add(keys[i], ids.hashes[i], ids.uses[i]);
    }
  }
}

template <class Key>
void KeyedTableOf<Key>::read_sketch(Prepared& to) const {
  if (!to.filter.sketch()) return;
  const std::vector<uint8_t>& own = filter_.sketch()->cells();
  const std::vector<uint8_t>& cells = to.saved.sketch ? *to.saved.sketch : own;
  if (cells.size() == own.size()) to.filter.sketch()->restore(cells);
}

template <class Key>
std::unique_ptr<PreparedTable> KeyedTableOf<Key>::prepare_restore(const SavedTable& saved) const {
  check_not_in_callback("restore");
  check_saved(saved);
  auto out = std::make_unique<Prepared>(saved, options_.dynamic);
  read_keys(*out);
  read_pending(*out);
  read_sketch(*out);
  return out;
}

// Fallback rows of another number get their initial values.
void KeyedTable::restore_fallback(const SavedTable& saved) {
  if (!saved.fallback) return;
  const int64_t n = first_key_row() - 1;
  const bool is_kept = saved.fallback.dim(0) == n;
  std::vector<float> row(options_.dim);
  for (int64_t i = 0; i < n; ++i) {
    const auto saved_row = [&](const Tensor& of) {
      return of.data<float>().data() + i * of.dim(1);
    };
    if (!is_kept) {
      initial_->fill_fallback(i, row);
      shard_->reset(1 + i, row.data());
      continue;
    }
    shard_->reset(1 + i, saved_row(saved.fallback));
    for (size_t slot = 0; slot < options_.slots.size(); ++slot) {
      const auto found = saved.fallback_slots.find(options_.slots[slot].name);
      if (found == saved.fallback_slots.end()) continue;
      shard_->write(static_cast<int>(slot) + 1, 1 + i, saved_row(found->second));
    }
  }
}

// Reads the rows of all keys. Their positions are those of the saved rows.
template <class Key>
void KeyedTableOf<Key>::read_rows(const Prepared& from) {
  const int64_t block = std::max<int64_t>(1, kBytesAtOnce / (4 * options_.dim));
  for (int part = 0; part <= static_cast<int>(options_.slots.size()); ++part) {
    const SavedPart* saved = &from.saved.rows;
    const int64_t width = shard_->width(part);
    if (part > 0) {
      const auto found = from.saved.slots.find(options_.slots[part - 1].name);
      if (found == from.saved.slots.end()) {
        const std::vector<float> initial(width, shard_->initial_slots()[part - 1]);
        shard_->fill_rows(part, first_key_row(), directory_.limit(), initial.data());
        continue;
      }
      saved = &found->second;
    }
    int64_t row = first_key_row();
    size_t next = 0;
    for (int64_t begin = from.first; begin < from.end; begin += block) {
      const int64_t end = std::min(begin + block, from.end);
      const Tensor values = saved->read(begin, end);
      const float* const first = values.template data<float>().data();
      if (!from.owned) {
        shard_->write_rows(part, row, end - begin, first);
        row += end - begin;
        continue;
      }
      for (; next < from.owned->size() && (*from.owned)[next] < end; ++next, ++row) {
        shard_->write(part, row, first + ((*from.owned)[next] - begin) * width);
      }
    }
  }
}

template <class Key>
void KeyedTableOf<Key>::replace(PreparedTable& prepared) {
  check_not_in_callback("restore");
  auto& from = static_cast<Prepared&>(prepared);
  const SavedTable& saved = from.saved;
  shard_->grow(first_key_row() + from.directory.limit());
  // Only memory that is reserved already is written from here on, until rows are read.
  directory_ = std::move(from.directory);
  filter_ = std::move(from.filter);
  from.directory.clear();
  plan_.reset();
  admitted_.clear();
  initial_->set_stream(saved.stream);
  // One process holds the totals of all.
  statistics_ = {.updates = saved.statistics.updates};
  if (peers().rank() == 0) statistics_ = saved.statistics;
  const bool holds_totals = options_.copies == nullptr || options_.copies->rank() == 0;
  inference_looked_up_ = holds_totals ? statistics_.inference_looked_up : 0;
  inference_hits_ = holds_totals ? statistics_.inference_hits : 0;
  clock_ = saved.clock;
  version_ = next_version();
  try {
    restore_fallback(saved);
    read_rows(from);
  } catch (...) {
    directory_.clear();
    filter_.pending().clear();
    statistics_ = {.updates = saved.statistics.updates};
    throw;
  }
}

template <class Key>
void KeyedTableOf<Key>::finish_restore() {
  refresh_size();
  const int64_t capacity = options_.dynamic.capacity;
  if (capacity > 0 && size() > capacity) {
    remove_lowest(capacity, EvictionReason::kCapacity, &DynamicTableStatistics::evicted_capacity);
    directory_.forget_removed();
    refresh_size();
  }
  version_ = next_version();
  report_removed();
}

void KeyedTable::restore(const DynamicTableState& state) {
  const auto prepared = prepare_restore(saved_table(state));
  replace(*prepared);
  finish_restore();
}

#define KEEL_INSTANTIATE(Key)                                                                   \
  template void KeyedTableOf<Key>::read_keys(Prepared&) const;                                  \
  template void KeyedTableOf<Key>::read_pending(Prepared&) const;                               \
  template void KeyedTableOf<Key>::read_sketch(Prepared&) const;                                \
  template void KeyedTableOf<Key>::read_rows(const Prepared&);                                  \
  template std::unique_ptr<PreparedTable> KeyedTableOf<Key>::prepare_restore(const SavedTable&) \
      const;                                                                                    \
  template void KeyedTableOf<Key>::replace(PreparedTable&);                                     \
  template void KeyedTableOf<Key>::finish_restore();
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
