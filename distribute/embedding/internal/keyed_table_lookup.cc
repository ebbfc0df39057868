// How a KeyedTable looks up keys.
#include <algorithm>

#include <keel/distribute/embedding/internal/keyed_table_of.h>

namespace keel::distribute {
namespace {

// Returns a batch without the ids that `drops` selects. Samples keep their positions.
template <class Drops>
FeatureBatch without_ids(const FeatureBatch& batch, std::vector<uint32_t>& numbers,
                         const Drops& drops) {
  const auto ids = batch.ids.data<int64_t>();
  const auto splits = batch.row_splits.data<int64_t>();
  const auto weights = batch.weights ? batch.weights.data<float>() : std::span<const float>();
  std::vector<int64_t> kept, new_splits = {0};
  std::vector<float> kept_weights;
  std::vector<uint32_t> kept_numbers;
  for (size_t sample = 0; sample + 1 < splits.size(); ++sample) {
    for (int64_t i = splits[sample]; i < splits[sample + 1]; ++i) {
      if (drops(numbers[i])) continue;
      kept.push_back(ids[i]);
      kept_numbers.push_back(numbers[i]);
      if (batch.weights) kept_weights.push_back(weights[i]);
    }
    new_splits.push_back(std::ssize(kept));
  }
  numbers = std::move(kept_numbers);
  return {
      .ids = Tensor::from(kept, {std::ssize(kept)}),
      .row_splits = Tensor::from(new_splits, {std::ssize(new_splits)}),
      .weights = batch.weights ? Tensor::from(kept_weights, {std::ssize(kept_weights)}) : Tensor()};
}

}  // namespace

template <class Key>
bool KeyedTableOf<Key>::has_room() const {
  const int64_t capacity = options_.dynamic.capacity;
  return capacity == 0 || size() < capacity || options_.dynamic.on_full != OnFull::kRefuse;
}

// Returns what a key reads that is neither a hit nor fresh.
template <class Key>
int64_t KeyedTableOf<Key>::miss_row(const Key& key) const {
  switch (options_.dynamic.not_admitted.kind) {
    case NotAdmitted::Kind::kZero:
      break;
    case NotAdmitted::Kind::kIgnore:
      return kIgnored;
    case NotAdmitted::Kind::kDefaultRow:
      return 1;
    case NotAdmitted::Kind::kHashed:
      return 1 + fallback_row(key, options_.dynamic.not_admitted.rows);
  }
  return 0;
}

template <class Key>
std::shared_ptr<KeyedLookup> KeyedTableOf<Key>::begin_lookup(std::span<const FeatureBatch> features,
                                                             bool training, int64_t update) const {
  check_type(features);
  size_t positions = 0;
  for (const FeatureBatch& feature : features) positions += feature.ids.size();
  auto out = std::make_shared<Lookup>(positions);
  out->version = version_;
  for (const FeatureBatch& feature : features) {
    std::vector<uint32_t>& numbers = out->numbers.emplace_back();
    numbers.reserve(feature.ids.size());
    for (const Key& key : feature.ids.template data<Key>()) {
      const uint32_t number = out->distinct.number(key, key_hash(key));
      if (number == out->entries.size()) out->entries.emplace_back();
      ++out->entries[number].count;
      numbers.push_back(number);
    }
  }
  out->reads.resize(out->entries.size());
  find_entries(*out, training, update);
  return out;
}

// Returns what a key without an owner elsewhere reads.
template <class Key>
int64_t KeyedTableOf<Key>::found_of(const Key& key, uint64_t hash, uint32_t position, bool training,
                                    int64_t update) const {
  if (position != KeyIndex::kNone) return first_key_row() + position;
  if (training && has_room() && filter_.qualifies(key, hash, update, *initial_)) return kFresh;
  return miss_row(key);
}

template <class Key>
void KeyedTableOf<Key>::find_entries(Lookup& lookup, bool training, int64_t update) const {
  const DistinctKeys<Key>& distinct = lookup.distinct;
  std::vector<uint32_t> here;  // unless all keys are owned here
  if (!peers().alone()) {
    std::vector<std::vector<uint32_t>> by_process(peers().size());
    for (uint32_t i = 0; i < distinct.size(); ++i) {
      by_process[peers().owner(distinct.hash(i))].push_back(i);
    }
    here = std::move(by_process[peers().rank()]);
    by_process[peers().rank()].clear();
    for (const std::vector<uint32_t>& numbers : by_process) {
      lookup.remote.insert(lookup.remote.end(), numbers.begin(), numbers.end());
      lookup.remote_ends.push_back(std::ssize(lookup.remote));
    }
  }
  const auto number = [&](size_t i) { return peers().alone() ? i : here[i]; };
  const auto key_at = [&](size_t i) -> const Key& { return distinct.key(number(i)); };
  const auto hash_at = [&](size_t i) { return distinct.hash(number(i)); };
  directory_.find_all(peers().alone() ? distinct.size() : here.size(), key_at, hash_at,
                      [&](size_t i, uint32_t position) {
                        lookup.entries[number(i)].found =
                            found_of(key_at(i), hash_at(i), position, training, update);
                      });
}

// A process asks for each key that it does not own.
template <class Key>
void KeyedTableOf<Key>::write_requests(const KeyedLookup& of,
                                       std::span<MessageWriter> messages) const {
  const auto& lookup = static_cast<const Lookup&>(of);
  int64_t first = 0;
  for (size_t p = 0; p < messages.size(); ++p) {
    const int64_t end = lookup.remote_ends[p];
    messages[p].put(end - first);
    for (; first < end; ++first) messages[p].put(lookup.distinct.key(lookup.remote[first]));
  }
}

// The reply has a byte for each key, then the rows of the hits. The initial row of a fresh key and
// the fallback rows are the same in all processes.
template <class Key>
void KeyedTableOf<Key>::answer(MessageReader& request, bool training, int64_t update,
                               MessageWriter& reply) const {
  std::vector<Key> keys(request.get<int64_t>());
  std::vector<uint64_t> hashes;
  for (Key& key : keys) {
    key = request.get<Key>();
    hashes.push_back(key_hash(key));
  }
  std::vector<int8_t> results;
  std::vector<int64_t> rows;
  directory_.find_all(
      keys.size(), [&](size_t i) -> const Key& { return keys[i]; },
      [&](size_t i) { return hashes[i]; },
      [&](size_t i, uint32_t position) {
        const int64_t found = found_of(keys[i], hashes[i], position, training, update);
        const bool hit = position != KeyIndex::kNone;
        results.push_back(static_cast<int8_t>(hit ? kRemote : found == kFresh ? kFresh : 0));
        if (hit) rows.push_back(found);
      });
  reply.put_all(std::span<const int8_t>(results));
  std::vector<float> values(rows.size() * options_.dim);
  shard_->read_rows(rows, values.data());
  reply.put_all(std::span<const float>(values));
}

template <class Key>
void KeyedTableOf<Key>::finish_lookup(KeyedLookup& of, std::span<const FeatureBatch> features,
                                      std::span<MessageReader> replies) const {
  auto& lookup = static_cast<Lookup&>(of);
  int64_t first = 0;
  std::vector<int8_t> results;
  std::vector<float> row(options_.dim);
  for (size_t p = 0; p < lookup.remote_ends.size(); ++p) {
    const int64_t end = lookup.remote_ends[p];
    results.resize(end - first);
    replies[p].get_all(std::span<int8_t>(results));
    for (const int8_t result : results) {
      const uint32_t number = lookup.remote[first++];
      Entry& entry = lookup.entries[number];
      entry.found = result == 0 ? miss_row(lookup.distinct.key(number)) : result;
      if (entry.found != kRemote) continue;
      replies[p].get_all(std::span<float>(row));
      give_row(lookup, number, row);
    }
  }
  count_found(lookup);
  replace_keys(lookup, features);
}

// Counts the occurrences by result.
template <class Key>
void KeyedTableOf<Key>::count_found(Lookup& lookup) const {
  for (const Entry& entry : lookup.entries) {
    if (entry.found >= first_key_row() || entry.found == kRemote) {
      lookup.hits += entry.count;
    } else if (entry.found == kFresh) {
      lookup.fresh += entry.count;
    } else {
      lookup.not_admitted += entry.count;
    }
  }
}

// Sets the row that an entry reads.
template <class Key>
void KeyedTableOf<Key>::give_row(Lookup& lookup, size_t entry, std::span<const float> row) const {
  lookup.reads[entry] = -1 - std::ssize(lookup.given_rows) / options_.dim;
  lookup.given_rows.insert(lookup.given_rows.end(), row.begin(), row.end());
}

// Fills the row numbers of the features, and the initial rows of fresh keys.
template <class Key>
void KeyedTableOf<Key>::replace_keys(Lookup& lookup, std::span<const FeatureBatch> features) const {
  std::vector<int64_t>& reads = lookup.reads;
  bool ignores = false;
  std::vector<float> row(options_.dim);
  for (size_t i = 0; i < reads.size(); ++i) {
    const int64_t found = lookup.entries[i].found;
    ignores = ignores || found == kIgnored;
    if (found == kRemote) continue;  // has been given its row
    // An id of a dense batch cannot be left out; it reads zeros instead.
    reads[i] = found == kIgnored ? 0 : found;
    if (found != kFresh) continue;
    initial_->fill(lookup.distinct.key(i), row);
    shard_->round_as_stored(row);
    give_row(lookup, i, row);
  }
  for (size_t f = 0; f < features.size(); ++f) {
    std::vector<uint32_t>& numbers = lookup.numbers[f];
    Tensor ids = Tensor::uninitialized({std::ssize(numbers)}, DType::kInt64);
    const std::span<int64_t> to = ids.template mutable_data<int64_t>();
    for (size_t i = 0; i < numbers.size(); ++i) to[i] = reads[numbers[i]];
    FeatureBatch batch = {.ids = std::move(ids),
                          .row_splits = features[f].row_splits,
                          .weights = features[f].weights};
    if (ignores && batch.row_splits) {
      batch = without_ids(batch, numbers, [&](uint32_t number) {
        return lookup.entries[number].found == kIgnored;
      });
    }
    lookup.features.push_back(std::move(batch));
  }
}

// An owner is told how often each key occurred, and whether it was read as a hit or fresh. A
// process that holds a copy of the table also counts the results.
template <class Key>
void KeyedTableOf<Key>::write_uses(const KeyedLookup& of, std::span<MessageWriter> messages) const {
  const auto& lookup = static_cast<const Lookup&>(of);
  const auto put = [&lookup, this](uint32_t number, MessageWriter& message) {
    const Entry& entry = lookup.entries[number];
    message.put(lookup.distinct.key(number));
    message.put(static_cast<uint32_t>(entry.count));
    message.put(static_cast<char>(entry.found == kFresh || entry.found == kRemote ||
                                  entry.found >= first_key_row()));
  };
  if (peers().alone()) {
    for (const int64_t results : {lookup.hits, lookup.fresh, lookup.not_admitted}) {
      messages[0].put(results);
    }
    messages[0].put(std::ssize(lookup.entries));
    for (uint32_t i = 0; i < lookup.entries.size(); ++i) put(i, messages[0]);
    return;
  }
  int64_t first = 0;
  for (size_t p = 0; p < messages.size(); ++p) {
    const int64_t end = lookup.remote_ends[p];
    messages[p].put(end - first);
    for (; first < end; ++first) put(lookup.remote[first], messages[p]);
  }
}

template <class Key>
std::shared_ptr<KeyedLookup> KeyedTableOf<Key>::read_uses(MessageReader& message) const {
  int64_t hits = 0, fresh = 0, not_admitted = 0;
  if (peers().alone()) {
    for (int64_t* const results : {&hits, &fresh, &not_admitted}) *results = message.get<int64_t>();
  }
  const auto count = message.get<int64_t>();
  auto out = std::make_shared<Lookup>(count);
  out->hits = hits;
  out->fresh = fresh;
  out->not_admitted = not_admitted;
  for (int64_t i = 0; i < count; ++i) {
    const Key key = message.get<Key>();
    out->distinct.number(key, key_hash(key));
    const auto occurrences = message.get<uint32_t>();
    const bool contributes = message.get<char>() != 0;
    out->entries.push_back({.found = contributes ? kFresh : 0, .count = occurrences});
  }
  out->is_foreign = true;
  out->version = -1;  // the keys have not been looked up here
  return out;
}

#define KEEL_INSTANTIATE(Key)                                                                      \
  template bool KeyedTableOf<Key>::has_room() const;                                               \
  template int64_t KeyedTableOf<Key>::miss_row(const Key&) const;                                  \
  template std::shared_ptr<KeyedLookup> KeyedTableOf<Key>::begin_lookup(                           \
      std::span<const FeatureBatch>, bool, int64_t) const;                                         \
  template void KeyedTableOf<Key>::find_entries(Lookup&, bool, int64_t) const;                     \
  template int64_t KeyedTableOf<Key>::found_of(const Key&, uint64_t, uint32_t, bool, int64_t)      \
      const;                                                                                       \
  template void KeyedTableOf<Key>::write_requests(const KeyedLookup&, std::span<MessageWriter>)    \
      const;                                                                                       \
  template void KeyedTableOf<Key>::answer(MessageReader&, bool, int64_t, MessageWriter&) const;    \
  template void KeyedTableOf<Key>::finish_lookup(KeyedLookup&, std::span<const FeatureBatch>,      \
                                                 std::span<MessageReader>) const;                  \
  template void KeyedTableOf<Key>::count_found(Lookup&) const;                                     \
  template void KeyedTableOf<Key>::give_row(Lookup&, size_t, std::span<const float>) const;        \
  template void KeyedTableOf<Key>::replace_keys(Lookup&, std::span<const FeatureBatch>) const;     \
  template void KeyedTableOf<Key>::write_uses(const KeyedLookup&, std::span<MessageWriter>) const; \
  template std::shared_ptr<KeyedLookup> KeyedTableOf<Key>::read_uses(MessageReader&) const;
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
