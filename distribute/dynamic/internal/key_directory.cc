#include <keel/distribute/dynamic/internal/key_directory.h>

#include <algorithm>
#include <optional>
#include <utility>

#include <keel/framework/base/errors.h>

namespace keel::distribute {

template <class Key>
uint32_t KeyDirectory<Key>::add(const Key& key, uint64_t hash, const KeyUse& use) {
  const bool is_new = first_free_ == kNone;
  if (is_new && limit_ >= int64_t{kNone}) {
    throw RuntimeError("embedding table: 2^32 - 1 rows are the maximum of one process");
  }
  const auto position = is_new ? static_cast<uint32_t>(limit_) : first_free_;
  const uint32_t next_free = is_new ? kNone : records_.free_link(position);
  Key copy = key;
  if (is_new) records_.grow(limit_ + 1);
  if (tracks_expiry_) expiry_.reserve(position, use.last);
  // The position stays free until nothing can fail any more.
  try {
    records_.set_use(position, use);
    index_.insert(hash, position, indexed());
  } catch (...) {
    records_.release(position, next_free);
    throw;
  }
  records_.assign(position, std::move(copy));
  if (tracks_expiry_) expiry_.add(position, use.last);
  if (is_new) {
    ++limit_;
  } else {
    first_free_ = next_free;
    if (next_free != kNone) records_.prefetch(next_free);
  }
  ++size_;
  return position;
}

template <class Key>
void KeyDirectory<Key>::reserve(int64_t keys) {
  if (keys > int64_t{kNone}) {
    throw RuntimeError("embedding table: 2^32 - 1 rows are the maximum of one process");
  }
  if (keys == 0) return;
  records_.grow(keys);
  index_.reserve(keys);
}

template <class Key>
void KeyDirectory<Key>::append(std::span<const Key> keys, std::span<const uint64_t> hashes,
                               std::span<const KeyUse> uses) {
  constexpr size_t kAhead = 32;
  const int64_t first = limit_;
  records_.grow(first + std::ssize(keys));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (i + kAhead < keys.size()) index_.prefetch(hashes[i + kAhead]);
    const auto position = static_cast<uint32_t>(first + static_cast<int64_t>(i));
    if (tracks_expiry_) expiry_.reserve(position, uses[i].last);
    records_.set_use(position, uses[i]);
    records_.assign(position, keys[i]);
    index_.insert(hashes[i], position, indexed());
    if (tracks_expiry_) expiry_.add(position, uses[i].last);
    limit_ = first + static_cast<int64_t>(i) + 1;
    ++size_;
  }
}

template <class Key>
void KeyDirectory<Key>::remove(uint32_t position) {
  index_.erase(key_hash(records_.key(position)), position, indexed());
  records_.release(position, first_free_);
  first_free_ = position;
  --size_;
}

template <class Key>
void KeyDirectory<Key>::remove_all(std::span<const uint32_t> positions) {
  constexpr size_t kSlotsAhead = 16, kRecordsAhead = 32;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i + kRecordsAhead < positions.size()) records_.prefetch(positions[i + kRecordsAhead]);
    if (i + kSlotsAhead < positions.size()) {
      index_.prefetch(key_hash(records_.key(positions[i + kSlotsAhead])));
    }
    remove(positions[i]);
  }
}

template <class Key>
void KeyDirectory<Key>::clear() {
  index_.clear();
  records_.clear();
  expiry_.clear();
  first_free_ = kNone;
  size_ = limit_ = 0;
}

template <class Key>
void KeyDirectory<Key>::halve_counts() {
  for (int64_t i = 0; i < limit_; ++i) {
    if (holds(i)) records_.halve_count(i);
  }
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
void KeyDirectory<Key>::sort(std::span<uint32_t> positions) const {
  std::ranges::sort(positions, [this](uint32_t a, uint32_t b) { return key(a) < key(b); });
}

template <class Key>
bool KeyDirectory<Key>::is_before(const Candidate& a, const Candidate& b) const {
  if (a.first != b.first) return a.first < b.first;
  if (a.second != b.second) return a.second < b.second;
  return key(a.position) < key(b.position);  // read only if count and time are equal
}

// Keeps up to 2 n candidates. Whenever there are so many, the n lowest of them remain, and the
// highest of these bounds the candidates that follow.
template <class Key>
auto KeyDirectory<Key>::select_lowest(int64_t n, KeyRank rank) const -> std::vector<Candidate> {
  constexpr int64_t kFewest = 1024;
  n = std::clamp<int64_t>(n, 0, size_);
  std::vector<Candidate> out;
  if (n == 0) return out;
  const int64_t most = std::max(2 * n, kFewest);
  out.reserve(std::min(most, size_));
  const auto keep_lowest = [&] {
    std::ranges::nth_element(out, out.begin() + (n - 1),
                             [this](const auto& a, const auto& b) { return is_before(a, b); });
    out.resize(n);
  };
  std::optional<Candidate> bound;
  for (int64_t i = 0; i < limit_; ++i) {
    if (!holds(i)) continue;
    const KeyUse of = use(i);
    const auto position = static_cast<uint32_t>(i);
    const Candidate candidate =
        rank == KeyRank::kLastThenCount
            ? Candidate{.first = of.last, .second = of.count, .position = position}
            : Candidate{.first = of.count, .second = of.last, .position = position};
    if (bound && !is_before(candidate, *bound)) continue;
    out.push_back(candidate);
    if (std::ssize(out) < most) continue;
    keep_lowest();
    bound = out[n - 1];
  }
  if (std::ssize(out) > n) keep_lowest();
  return out;
}

template <class Key>
std::vector<uint32_t> KeyDirectory<Key>::lowest_unordered(int64_t n, KeyRank rank) const {
  std::vector<uint32_t> out;
  for (const Candidate& candidate : select_lowest(n, rank)) out.push_back(candidate.position);
  return out;
}

template <class Key>
std::vector<uint32_t> KeyDirectory<Key>::lowest(int64_t n, KeyRank rank) const {
  std::vector<Candidate> lowest = select_lowest(n, rank);
  std::ranges::sort(lowest, [this](const auto& a, const auto& b) { return is_before(a, b); });
  std::vector<uint32_t> out;
  for (const Candidate& candidate : lowest) out.push_back(candidate.position);
  return out;
}

template class KeyDirectory<int64_t>;
template class KeyDirectory<std::string>;

}  // namespace keel::distribute
