// The calls between steps of a KeyedTable.
#include <algorithm>
#include <unordered_set>

#include <keel/distribute/embedding/internal/keyed_table_of.h>
#include <keel/framework/base/errors.h>

namespace keel::distribute {

template <class Key>
std::span<const Key> KeyedTableOf<Key>::elements(const Tensor& keys, const char* caller) const {
  constexpr DType kType = std::is_same_v<Key, int64_t> ? DType::kInt64 : DType::kString;
  if (keys.dtype() != kType) {
    throw ValueError(caller, ": the ids of table '", options_.name, "' must be ", kType,
                     ", received ", keys.dtype());
  }
  return keys.data<Key>();
}

template <class Key>
uint32_t KeyedTableOf<Key>::position_of(const Key& key, const char* caller) const {
  const uint32_t position = directory_.find(key);
  if (position == KeyIndex::kNone) {
    throw ValueError(caller, ": table '", options_.name, "' has no row for id ", key,
                     "; check contains() first");
  }
  return position;
}

template <class Key>
Tensor KeyedTableOf<Key>::key_tensor(const KeyDirectory<Key>& of,
                                     std::span<const uint32_t> positions) const {
  std::vector<Key> out;
  out.reserve(positions.size());
  for (const uint32_t position : positions) out.push_back(of.key(position));
  return Tensor::from(out, {std::ssize(out)});
}

template <class Key>
Tensor KeyedTableOf<Key>::rows_at(int part, std::span<const uint32_t> positions) const {
  Tensor out = Tensor::uninitialized({std::ssize(positions), options_.dim}, DType::kFloat32);
  float* to = out.template mutable_data<float>().data();
  for (const uint32_t position : positions) {
    shard_.read(part, first_key_row() + position, to);
    to += options_.dim;
  }
  return out;
}

template <class Key>
DynamicTableStatistics KeyedTableOf<Key>::statistics() const {
  DynamicTableStatistics out = statistics_;
  out.inference_looked_up = inference_looked_up_;
  out.inference_hits = inference_hits_;
  out.size = directory_.size();
  out.pending = filter_.pending().size();
  return out;
}

template <class Key>
DynamicTableMemory KeyedTableOf<Key>::memory() const {
  return {.rows = shard_.bytes(),
          .index = directory_.bytes(),
          .pending = filter_.pending().bytes(),
          .sketch = filter_.sketch() ? std::ssize(filter_.sketch()->cells()) : 0};
}

template <class Key>
Tensor KeyedTableOf<Key>::keys() const {
  return key_tensor(directory_, directory_.sorted());
}

template <class Key>
std::vector<char> KeyedTableOf<Key>::contains(const Tensor& keys) const {
  std::vector<char> out;
  for (const Key& key : elements(keys, "contains")) {
    out.push_back(directory_.find(key) == KeyIndex::kNone ? 0 : 1);
  }
  return out;
}

template <class Key>
Tensor KeyedTableOf<Key>::read(int part, const Tensor& keys) const {
  const char* const caller = part == 0 ? "rows" : "slots";
  std::vector<uint32_t> positions;
  for (const Key& key : elements(keys, caller)) positions.push_back(position_of(key, caller));
  return rows_at(part, positions);
}

template <class Key>
DynamicKeyInfo KeyedTableOf<Key>::info(const Tensor& key) const {
  const std::span<const Key> keys = elements(key, "info");
  if (keys.size() != 1) throw ValueError("info: requires one id, received ", keys.size());
  const uint64_t hash = key_hash(keys[0]);
  const uint32_t position = directory_.find(keys[0], hash);
  if (position == KeyIndex::kNone) return {.pending_count = filter_.count(keys[0], hash)};
  const KeyUse& use = directory_.use(position);
  return {.admitted = true, .count = use.count, .last = use.last, .born = use.born};
}

template <class Key>
void KeyedTableOf<Key>::assign_rows(const Tensor& keys, const Tensor& values) {
  check_not_in_callback("assign_rows");
  const std::span<const Key> ids = elements(keys, "assign_rows");
  const Shape shape = {std::ssize(ids), options_.dim};
  if (values.dtype() != DType::kFloat32 || values.shape() != shape) {
    throw ValueError("assign_rows: the values for table '", options_.name, "' must be float32 ",
                     shape, ", received ", values.dtype(), " ", values.shape());
  }
  std::unordered_set<Key> distinct;
  int64_t added = 0;
  for (const Key& key : ids) {
    if (!distinct.insert(key).second) {
      throw ValueError("assign_rows: id ", key, " of table '", options_.name,
                       "' is repeated; pass each id once");
    }
    if (directory_.find(key) == KeyIndex::kNone) ++added;
  }
  const int64_t capacity = options_.dynamic.capacity;
  if (capacity > 0 && directory_.size() + added > capacity) {
    throw ValueError("assign_rows: table '", options_.name, "' with capacity ", capacity, " and ",
                     directory_.size(), " rows has no room for ", added,
                     " more; increase capacity or erase rows");
  }
  const int64_t now = time_between_updates();
  const float* row = values.data<float>().data();
  for (const Key& key : ids) {
    const uint64_t hash = key_hash(key);
    uint32_t position = directory_.find(key, hash);
    if (position == KeyIndex::kNone) {
      filter_.take(key, hash);
      position = static_cast<uint32_t>(create_row(key, hash, {.last = now, .born = now}) -
                                       first_key_row());
      ++statistics_.assigned;
    }
    shard_.write(0, first_key_row() + position, row);
    row += options_.dim;
  }
  version_ = next_version();
}

template <class Key>
void KeyedTableOf<Key>::erase(const Tensor& keys) {
  check_not_in_callback("erase");
  std::vector<uint32_t> positions;
  std::unordered_set<Key> distinct;
  for (const Key& key : elements(keys, "erase")) {
    if (!distinct.insert(key).second) continue;
    const uint64_t hash = key_hash(key);
    filter_.take(key, hash);
    const uint32_t position = directory_.find(key, hash);
    if (position != KeyIndex::kNone) positions.push_back(position);
  }
  remove(positions, EvictionReason::kErased, statistics_.erased);
  version_ = next_version();
  const auto overwrite = [&] {
    for (const uint32_t position : positions) shard_.clear(first_key_row() + position);
  };
  try {
    report_removed();
  } catch (...) {
    overwrite();
    throw;
  }
  overwrite();
}

template <class Key>
int64_t KeyedTableOf<Key>::prune(const PruneOptions& options) {
  check_not_in_callback("prune");
  const int64_t before = directory_.size();
  const auto remove_some = [&](std::span<const uint32_t> positions) {
    remove(positions, EvictionReason::kPruned, statistics_.pruned);
  };
  if (options.ttl > 0) remove_some(expired(options.ttl, time_between_updates()));
  if (options.min_l2_norm > 0) remove_some(below_norm(options.min_l2_norm, {}));
  if (options.min_count > 0) {
    std::vector<uint32_t> rare = directory_.positions();
    std::erase_if(rare, [&](uint32_t position) {
      return directory_.use(position).count >= options.min_count;
    });
    remove_some(rare);
  }
  if (options.max_rows >= 0 && directory_.size() > options.max_rows) {
    remove_some(directory_.lowest(directory_.size() - options.max_rows, rank()));
  }
  version_ = next_version();
  const int64_t removed = before - directory_.size();
  report_removed();
  return removed;
}

#define KEEL_INSTANTIATE(Key)                                                                  \
  template std::span<const Key> KeyedTableOf<Key>::elements(const Tensor&, const char*) const; \
  template Tensor KeyedTableOf<Key>::key_tensor(const KeyDirectory<Key>&,                      \
                                                std::span<const uint32_t>) const;              \
  template Tensor KeyedTableOf<Key>::rows_at(int, std::span<const uint32_t>) const;            \
  template DynamicTableStatistics KeyedTableOf<Key>::statistics() const;                       \
  template DynamicTableMemory KeyedTableOf<Key>::memory() const;                               \
  template Tensor KeyedTableOf<Key>::keys() const;                                             \
  template std::vector<char> KeyedTableOf<Key>::contains(const Tensor&) const;                 \
  template Tensor KeyedTableOf<Key>::read(int, const Tensor&) const;                           \
  template DynamicKeyInfo KeyedTableOf<Key>::info(const Tensor&) const;                        \
  template void KeyedTableOf<Key>::assign_rows(const Tensor&, const Tensor&);                  \
  template void KeyedTableOf<Key>::erase(const Tensor&);                                       \
  template int64_t KeyedTableOf<Key>::prune(const PruneOptions&);
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
