#include <keel/layers/serving/steps/internal/serving_keys.h>

#include <algorithm>
#include <bit>

namespace keel {

ServingKeys::ServingKeys(const DynamicTableState& state, const DynamicVocabulary& options)
    : options_(options),
      keys_(state.keys),
      first_row_(1 + state.fallback.dim(0)),
      table_(Tensor::zeros({first_row_ + state.rows.dim(0), state.rows.dim(1)})),
      slots_(std::bit_ceil(2 * static_cast<size_t>(keys_.size()) + 1), kEmpty) {
  const auto fallback = state.fallback.data<float>(), rows = state.rows.data<float>();
  const auto to = table_.mutable_data<float>().begin() + state.rows.dim(1);
  std::ranges::copy(rows, std::ranges::copy(fallback, to).out);
  if (has_strings()) {
    insert_all<std::string>();
  } else {
    insert_all<int64_t>();
  }
}

template <class Key>
void ServingKeys::insert_all() {
  uint32_t position = 0;
  for (const Key& key : keys_.data<Key>()) {
    size_t at = home(distribute::key_hash(key));
    while (slots_[at] != kEmpty) at = home(at + 1);
    slots_[at] = position++;
  }
}

template <class Key>
int64_t ServingKeys::row_of(const Key& key) const {
  const auto keys = keys_.data<Key>();
  for (size_t at = home(distribute::key_hash(key)); slots_[at] != kEmpty; at = home(at + 1)) {
    if (keys[slots_[at]] == key) return first_row_ + slots_[at];
  }
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

template int64_t ServingKeys::row_of(const int64_t&) const;
template int64_t ServingKeys::row_of(const std::string&) const;

}  // namespace keel
