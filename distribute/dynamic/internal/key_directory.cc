#include <keel/distribute/dynamic/internal/key_directory.h>

#include <algorithm>
#include <tuple>

#include <keel/framework/base/errors.h>

namespace keel::distribute {

template <class Key>
uint32_t KeyDirectory<Key>::add(const Key& key, uint64_t hash, const KeyUse& use) {
  const bool is_new = free_.empty();
  if (is_new && limit_ >= int64_t{kNone}) {
    throw RuntimeError("embedding table: 2^32 - 1 rows are the maximum of one process");
  }
  const auto position = is_new ? static_cast<uint32_t>(limit_) : free_.back();
  if (is_new) {
    keys_.grow(limit_ + 1);
    uses_.grow(limit_ + 1);
  }
  keys_[position] = key;
  index_.insert(hash, position);
  uses_[position] = use;
  if (is_new) {
    ++limit_;
  } else {
    free_.pop_back();
  }
  ++size_;
  if (tracks_expiry_) expiry_.add(position, use.last);
  return position;
}

template <class Key>
void KeyDirectory<Key>::remove(uint32_t position) {
  free_.push_back(position);
  index_.erase(key_hash(keys_[position]), position);
  keys_[position] = Key();
  uses_[position] = {};
  --size_;
}

template <class Key>
void KeyDirectory<Key>::clear() {
  index_.clear();
  keys_.clear();
  uses_.clear();
  free_.clear();
  expiry_.clear();
  size_ = limit_ = 0;
}

template <class Key>
void KeyDirectory<Key>::halve_counts() {
  for (int64_t i = 0; i < limit_; ++i) uses_[i].count /= 2;
}

template <class Key>
std::vector<uint32_t> KeyDirectory<Key>::positions() const {
  std::vector<uint32_t> out;
  out.reserve(size_);
  for (int64_t i = 0; i < limit_; ++i) {
    if (holds(i)) out.push_back(static_cast<uint32_t>(i));
  }
  return out;
}

template <class Key>
std::vector<uint32_t> KeyDirectory<Key>::sorted() const {
  std::vector<uint32_t> out = positions();
  sort(out);
  return out;
}

template <class Key>
void KeyDirectory<Key>::sort(std::span<uint32_t> some) const {
  std::ranges::sort(some, [this](uint32_t a, uint32_t b) { return keys_[a] < keys_[b]; });
}

template <class Key>
std::vector<uint32_t> KeyDirectory<Key>::lowest(int64_t n, KeyRank rank) const {
  std::vector<uint32_t> out = positions();
  const auto is_lower = [&](uint32_t a, uint32_t b) {
    const KeyUse &x = uses_[a], &y = uses_[b];
    const int64_t x_count = x.count, y_count = y.count;
    const bool by_last = rank == KeyRank::kLastThenCount;
    return by_last ? std::tie(x.last, x_count, keys_[a]) < std::tie(y.last, y_count, keys_[b])
                   : std::tie(x_count, x.last, keys_[a]) < std::tie(y_count, y.last, keys_[b]);
  };
  n = std::clamp<int64_t>(n, 0, std::ssize(out));
  std::ranges::nth_element(out, out.begin() + n, is_lower);
  out.resize(n);
  std::ranges::sort(out, is_lower);
  return out;
}

template class KeyDirectory<int64_t>;
template class KeyDirectory<std::string>;

}  // namespace keel::distribute
