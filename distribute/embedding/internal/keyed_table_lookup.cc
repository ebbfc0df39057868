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
  return capacity == 0 || directory_.size() < capacity ||
         options_.dynamic.on_full != OnFull::kRefuse;
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
std::shared_ptr<KeyedLookup> KeyedTableOf<Key>::look_up_keys(std::span<const FeatureBatch> features,
                                                             bool training, int64_t update) const {
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
  find_entries(*out, training, update);
  replace_keys(*out, features);
  return out;
}

template <class Key>
void KeyedTableOf<Key>::find_entries(Lookup& lookup, bool training, int64_t update) const {
  const DistinctKeys<Key>& distinct = lookup.distinct;
  const bool admits = training && has_room();
  const auto key_at = [&](size_t i) -> const Key& { return distinct.key(i); };
  const auto hash_at = [&](size_t i) { return distinct.hash(i); };
  directory_.find_all(distinct.size(), key_at, hash_at, [&](size_t i, uint32_t position) {
    const Key& key = key_at(i);
    const uint64_t hash = hash_at(i);
    Entry& entry = lookup.entries[i];
    if (position != KeyIndex::kNone) {
      entry.found = first_key_row() + position;
      lookup.hits += entry.count;
    } else if (admits && filter_.qualifies(key, hash, update, *initial_)) {
      entry.found = kFresh;
      lookup.fresh += entry.count;
    } else {
      entry.found = miss_row(key);
      lookup.not_admitted += entry.count;
    }
  });
}

// Fills the row numbers of the features, and the initial rows of fresh keys.
template <class Key>
void KeyedTableOf<Key>::replace_keys(Lookup& lookup, std::span<const FeatureBatch> features) const {
  std::vector<int64_t>& reads = lookup.reads;
  reads.resize(lookup.entries.size());
  bool ignores = false;
  int64_t fresh = 0;
  for (size_t i = 0; i < reads.size(); ++i) {
    const int64_t found = lookup.entries[i].found;
    ignores = ignores || found == kIgnored;
    // An id of a dense batch cannot be left out; it reads zeros instead.
    reads[i] = found == kIgnored ? 0 : found == kFresh ? -1 - fresh : found;
    if (found != kFresh) continue;
    lookup.fresh_rows.resize((fresh + 1) * options_.dim);
    const std::span<float> row(&lookup.fresh_rows[fresh * options_.dim], options_.dim);
    initial_->fill(lookup.distinct.key(i), row);
    shard_.round_as_stored(row);
    ++fresh;
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

#define KEEL_INSTANTIATE(Key)                                                  \
  template bool KeyedTableOf<Key>::has_room() const;                           \
  template int64_t KeyedTableOf<Key>::miss_row(const Key&) const;              \
  template std::shared_ptr<KeyedLookup> KeyedTableOf<Key>::look_up_keys(       \
      std::span<const FeatureBatch>, bool, int64_t) const;                     \
  template void KeyedTableOf<Key>::find_entries(Lookup&, bool, int64_t) const; \
  template void KeyedTableOf<Key>::replace_keys(Lookup&, std::span<const FeatureBatch>) const;
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
