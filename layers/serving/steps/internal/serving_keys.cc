#include <keel/layers/serving/steps/internal/serving_keys.h>

#include <algorithm>
#include <span>

namespace keel {

ServingKeys::ServingKeys(const DynamicTableState& state, const DynamicVocabulary& options)
    : options_(options),
      first_row_(1 + state.fallback.dim(0)),
      strings_(has_strings() ? state.keys : Tensor()),
      table_(Tensor::zeros({first_row_ + state.rows.dim(0), state.rows.dim(1)})) {
  switch (options.not_admitted.kind) {
    case NotAdmitted::Kind::kZero:
      break;
    case NotAdmitted::Kind::kIgnore:
      row_of_others_ = -1;
      break;
    case NotAdmitted::Kind::kDefaultRow:
      row_of_others_ = 1;
      break;
    case NotAdmitted::Kind::kHashed:
      hashed_rows_ = options.not_admitted.rows;
      break;
  }
  const auto fallback = state.fallback.data<float>(), rows = state.rows.data<float>();
  const auto to = table_.mutable_data<float>().begin() + state.rows.dim(1);
  std::ranges::copy(rows, std::ranges::copy(fallback, to).out);
  // Half of the slots are used: longer probes take more mispredicted branches.
  const int64_t size = std::max<int64_t>(1, 2 * state.keys.size());
  memory_ = Tensor::zeros({size, 2}, DType::kInt64);
  slots_ = reinterpret_cast<Slot*>(memory_.mutable_data<int64_t>().data());
  size_ = static_cast<size_t>(size);
  int64_t row = first_row_;
  if (has_strings()) {
    for (const std::string& key : strings_.data<std::string>()) {
      const uint64_t hash = distribute::key_hash(key);
      insert(hash, hash, row++);
    }
  } else {
    for (const int64_t key : state.keys.data<int64_t>()) {
      insert(distribute::key_hash(key), static_cast<uint64_t>(key), row++);
    }
  }
}

void ServingKeys::insert(uint64_t hash, uint64_t key, int64_t row) {
  size_t at = home(hash);
  while (slots_[at].row != 0) at = at + 1 == size_ ? 0 : at + 1;
  slots_[at] = {.key = key, .row = row};
}

bool ServingKeys::is_key(int64_t row, const std::string& key) const {
  return strings_.data<std::string>()[row - first_row_] == key;
}

}  // namespace keel
