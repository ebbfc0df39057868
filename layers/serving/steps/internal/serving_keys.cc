#include <keel/layers/serving/steps/internal/serving_keys.h>

#include <algorithm>
#include <span>

namespace keel {
namespace {

// What KeyIndex reads of the keys that it contains.
template <class Key>
struct IndexedKeys {
  std::span<const Key> keys;

  uint64_t hash(uint32_t position) const { return distribute::key_hash(keys[position]); }
  void prefetch(uint32_t position) const { __builtin_prefetch(&keys[position]); }
};

template <class Key>
void insert_all(const Tensor& tensor, distribute::KeyIndex& index) {
  const IndexedKeys<Key> indexed = {tensor.data<Key>()};
  const auto size = static_cast<uint32_t>(indexed.keys.size());
  index.reserve(size);
  for (uint32_t position = 0; position < size; ++position) {
    index.insert(indexed.hash(position), position, indexed);
  }
}

}  // namespace

ServingKeys::ServingKeys(const DynamicTableState& state, const DynamicVocabulary& options)
    : options_(options),
      keys_(state.keys),
      first_row_(1 + state.fallback.dim(0)),
      table_(Tensor::zeros({first_row_ + state.rows.dim(0), state.rows.dim(1)})) {
  const auto fallback = state.fallback.data<float>(), rows = state.rows.data<float>();
  const auto to = table_.mutable_data<float>().begin() + state.rows.dim(1);
  std::ranges::copy(rows, std::ranges::copy(fallback, to).out);
  if (has_strings()) {
    insert_all<std::string>(keys_, index_);
  } else {
    insert_all<int64_t>(keys_, index_);
  }
}

template <class Key>
int64_t ServingKeys::row_of(const Key& key) const {
  const auto keys = keys_.data<Key>();
  const uint32_t position =
      index_.find(distribute::key_hash(key), [&](uint32_t other) { return keys[other] == key; });
  if (position != distribute::KeyIndex::kNone) return first_row_ + position;
  switch (options_.not_admitted.kind) {
    case NotAdmitted::Kind::kZero:
      break;
    case NotAdmitted::Kind::kIgnore:
      return -1;
    case NotAdmitted::Kind::kDefaultRow:
      return 1;
    case NotAdmitted::Kind::kHashed:
      return 1 + distribute::fallback_row(key, options_.not_admitted.rows);
  }
  return 0;
}

template <class Key>
int64_t ServingKeys::prefetch_id_of(const Key& key) const {
  const uint32_t position = index_.first_candidate(distribute::key_hash(key));
  if (position == distribute::KeyIndex::kNone) return 0;
  __builtin_prefetch(&keys_.data<Key>()[position]);
  return first_row_ + position;
}

template int64_t ServingKeys::prefetch_id_of(const int64_t&) const;
template int64_t ServingKeys::prefetch_id_of(const std::string&) const;
template int64_t ServingKeys::row_of(const int64_t&) const;
template int64_t ServingKeys::row_of(const std::string&) const;

}  // namespace keel
