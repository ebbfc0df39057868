// The calls between steps of a KeyedTable.
#include <absl/cleanup/cleanup.h>
#include <algorithm>
#include <unordered_set>
#include <utility>

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
Tensor KeyedTableOf<Key>::key_tensor(const KeyDirectory<Key>& of,
                                     std::span<const uint32_t> positions) const {
  std::vector<Key> out;
  out.reserve(positions.size());
  for (const uint32_t position : positions) out.push_back(of.key(position));
  return Tensor::from(out, {std::ssize(out)});
}

template <class Key>
Tensor KeyedTableOf<Key>::rows_at(int part, std::span<const uint32_t> positions) const {
  Tensor out = Tensor::uninitialized({std::ssize(positions), shard_->width(part)}, DType::kFloat32);
  shard_->read_rows(part, first_key_row(), positions, out.template mutable_data<float>().data());
  return out;
}

template <class Key>
DynamicTableStatistics KeyedTableOf<Key>::local_statistics() const {
  DynamicTableStatistics out = statistics_;
  out.inference_looked_up = inference_looked_up_;
  out.inference_hits = inference_hits_;
  out.size = directory_.size();
  out.pending = filter_.pending().size();
  return out;
}

template <class Key>
DynamicTableStatistics KeyedTableOf<Key>::statistics() const {
  using S = DynamicTableStatistics;
  DynamicTableStatistics out = local_statistics();
  if (options_.copies != nullptr) {
    const int64_t mine[] = {out.inference_looked_up, out.inference_hits};
    const auto received = all_gather(*options_.copies, "inference lookups of a dynamic table",
                                     {std::as_bytes(std::span(mine))});
    for (int p = 0; p < options_.copies->size(); ++p) {
      if (p == options_.copies->rank()) continue;
      MessageReader reader(received[p].at(0));
      out.inference_looked_up += reader.get<int64_t>();
      out.inference_hits += reader.get<int64_t>();
    }
  }
  if (peers().alone()) return out;
  MessageWriter mine;
  mine.put(out);
  const auto messages = peers().all_gather("statistics of a dynamic table", mine);
  for (int p = 0; p < peers().size(); ++p) {
    if (p == peers().rank()) continue;
    MessageReader reader{Bytes(messages[p])};
    const S of_process = reader.get<S>();
    for (const auto counter :
         {&S::looked_up, &S::hits, &S::fresh, &S::not_admitted, &S::admitted, &S::assigned,
          &S::refused, &S::dropped_gradients, &S::evicted_ttl, &S::evicted_norm,
          &S::evicted_capacity, &S::pruned, &S::erased, &S::inference_looked_up, &S::inference_hits,
          &S::size, &S::pending}) {
      out.*counter += of_process.*counter;
    }
  }
  return out;
}

template <class Key>
int64_t KeyedTableOf<Key>::sum_of_all(int64_t mine) const {
  if (peers().alone()) return mine;
  MessageWriter message;
  message.put(mine);
  int64_t out = 0;
  const auto messages = peers().all_gather("sizes of a dynamic table", message);
  for (MessageReader& reader : readers_of(messages)) out += reader.get<int64_t>();
  return out;
}

template <class Key>
void KeyedTableOf<Key>::refresh_size() {
  size_of_all_ = sum_of_all(directory_.size());
}

template <class Key>
DynamicTableMemory KeyedTableOf<Key>::memory() const {
  using M = DynamicTableMemory;
  M out = {.rows = shard_->bytes(),
           .index = directory_.bytes(),
           .pending = filter_.pending().bytes(),
           .sketch = filter_.sketch() ? std::ssize(filter_.sketch()->cells()) : 0};
  if (peers().alone()) return out;
  MessageWriter mine;
  mine.put(out);
  out = {};
  const auto messages = peers().all_gather("memory of a dynamic table", mine);
  for (MessageReader& reader : readers_of(messages)) {
    const M of_process = reader.get<M>();
    for (const auto part : {&M::rows, &M::index, &M::pending, &M::sketch}) {
      out.*part += of_process.*part;
    }
  }
  return out;
}

template <class Key>
Tensor KeyedTableOf<Key>::keys() const {
  const Tensor here = key_tensor(directory_, directory_.sorted());
  if (peers().alone()) return here;
  MessageWriter mine;
  mine.put(here.size());
  for (const Key& key : here.data<Key>()) mine.put(key);
  std::vector<Key> out;
  const auto messages = peers().all_gather("keys of a dynamic table", mine);
  for (MessageReader& reader : readers_of(messages)) {
    for (auto n = reader.get<int64_t>(); n > 0; --n) out.push_back(reader.get<Key>());
  }
  std::ranges::sort(out);
  return Tensor::from(out, {std::ssize(out)});
}

template <class Key>
std::vector<char> KeyedTableOf<Key>::contains(const Tensor& keys) const {
  std::vector<char> out;
  for (const Key& key : elements(keys, "contains")) {
    out.push_back(directory_.find(key) == KeyIndex::kNone ? 0 : 1);
  }
  if (peers().alone()) return out;
  MessageWriter mine;
  mine.put_all(std::span<const char>(out));
  std::vector<char> of_process(out.size());
  const auto messages = peers().all_gather("contains", mine);
  for (MessageReader& reader : readers_of(messages)) {
    reader.get_all(std::span<char>(of_process));
    for (size_t i = 0; i < out.size(); ++i) out[i] = static_cast<char>(out[i] | of_process[i]);
  }
  return out;
}

template <class Key>
Tensor KeyedTableOf<Key>::read(int part, const Tensor& keys) const {
  const char* const caller = part == 0 ? "rows" : "slots";
  const std::span<const Key> ids = elements(keys, caller);
  const std::vector<char> present = contains(keys);
  const auto absent = std::ranges::find(present, 0) - present.begin();
  if (absent < std::ssize(present)) {
    throw ValueError(caller, ": table '", options_.name, "' has no row for id ", ids[absent],
                     "; check contains() first");
  }
  return read_of_all(part, ids, caller);
}

// Each process sends the rows of the keys that it owns, in the order of the keys.
template <class Key>
Tensor KeyedTableOf<Key>::read_of_all(int part, std::span<const Key> keys,
                                      const char* caller) const {
  std::vector<uint32_t> positions;
  for (const Key& key : keys) {
    const uint32_t position = directory_.find(key);
    if (position != KeyIndex::kNone) positions.push_back(position);
  }
  Tensor here = rows_at(part, positions);
  if (peers().alone()) return here;
  MessageWriter mine;
  mine.put_all(here.data<float>());
  const auto messages = peers().all_gather(caller, mine);
  std::vector<MessageReader> readers = readers_of(messages);
  const int64_t width = shard_->width(part);
  Tensor out = Tensor::uninitialized({std::ssize(keys), width}, DType::kFloat32);
  std::span<float> rest = out.template mutable_data<float>();
  for (const Key& key : keys) {
    readers[peers().owner(key_hash(key))].get_all(rest.first(width));
    rest = rest.subspan(width);
  }
  return out;
}

template <class Key>
DynamicKeyInfo KeyedTableOf<Key>::info(const Tensor& key) const {
  const std::span<const Key> keys = elements(key, "info");
  if (keys.size() != 1) throw ValueError("info: requires one id, received ", keys.size());
  const uint64_t hash = key_hash(keys[0]);
  const uint32_t position = directory_.find(keys[0], hash);
  DynamicKeyInfo out = {.pending_count = filter_.count(keys[0], hash)};
  if (position != KeyIndex::kNone) {
    const KeyUse use = directory_.use(position);
    out = {.admitted = true, .count = use.count, .last = use.last, .born = use.born};
  }
  if (!peers().alone()) {
    MessageWriter mine;
    mine.put(out);
    const auto messages = peers().all_gather("info", mine);
    MessageReader of_owner{Bytes(messages[peers().owner(hash)])};
    out = of_owner.get<DynamicKeyInfo>();
  }
  out.owner = owner_of_key_shard(key_shard(hash), peers().hosts());
  return out;
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
    const uint64_t hash = key_hash(key);
    if (peers().owns(hash) && directory_.find(key, hash) == KeyIndex::kNone) ++added;
  }
  // A key that another process owns has no row here.
  const int64_t capacity = options_.dynamic.capacity;
  refresh_size();
  const int64_t added_here = std::exchange(added, sum_of_all(added));
  if (capacity > 0 && size() + added > capacity) {
    throw ValueError("assign_rows: table '", options_.name, "' with capacity ", capacity, " and ",
                     size(), " rows has no room for ", added,
                     " more; increase capacity or erase rows");
  }
  shard_->grow(row_limit() + added_here);
  version_ = next_version();
  const int64_t now = time_between_updates();
  const float* row = values.data<float>().data();
  for (size_t i = 0; i < ids.size(); ++i, row += options_.dim) {
    const Key& key = ids[i];
    const uint64_t hash = key_hash(key);
    if (!peers().owns(hash)) continue;
    uint32_t position = directory_.find(key, hash);
    if (position == KeyIndex::kNone) {
      filter_.take(key, hash);
      position = static_cast<uint32_t>(create_row(key, hash, {.last = now, .born = now}) -
                                       first_key_row());
      ++statistics_.assigned;
    }
    shard_->write(0, first_key_row() + position, row);
  }
  refresh_size();
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
  directory_.forget_removed();
  filter_.pending().forget_removed();
  refresh_size();
  version_ = next_version();
  // Callbacks read the rows, so they are overwritten afterwards, even if a callback throws.
  const absl::Cleanup overwrite = [&] {
    for (const uint32_t position : positions) shard_->clear(first_key_row() + position);
  };
  report_removed();
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
  if (options.max_rows >= 0) {
    remove_lowest(options.max_rows, EvictionReason::kPruned, &DynamicTableStatistics::pruned);
  }
  directory_.forget_removed();
  refresh_size();
  version_ = next_version();
  const int64_t removed = sum_of_all(before - directory_.size());
  report_removed();
  return removed;
}

#define KEEL_INSTANTIATE(Key)                                                                  \
  template std::span<const Key> KeyedTableOf<Key>::elements(const Tensor&, const char*) const; \
  template Tensor KeyedTableOf<Key>::key_tensor(const KeyDirectory<Key>&,                      \
                                                std::span<const uint32_t>) const;              \
  template Tensor KeyedTableOf<Key>::rows_at(int, std::span<const uint32_t>) const;            \
  template DynamicTableStatistics KeyedTableOf<Key>::statistics() const;                       \
  template int64_t KeyedTableOf<Key>::sum_of_all(int64_t) const;                               \
  template void KeyedTableOf<Key>::refresh_size();                                             \
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
