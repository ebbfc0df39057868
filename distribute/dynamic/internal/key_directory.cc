#include <keel/distribute/dynamic/internal/key_directory.h>

#include <algorithm>
#include <cmath>
#include <new>
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
  if (!leaving_.empty()) clean(kCleanedByAdd);
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
std::vector<uint32_t> KeyDirectory<Key>::take_expired(int64_t limit) {
  return expiry_.take_expired(limit, [this](uint32_t position) {
    return holds(position) ? use(position).last : ExpiryQueue::kNone;
  });
}

template <class Key>
void KeyDirectory<Key>::release(uint32_t position) {
  if (tracks_expiry_) expiry_.remove(position);
  index_.erase(key_hash(records_.key(position)), position, indexed());
  records_.release(position, first_free_);
  first_free_ = position;
}

template <class Key>
void KeyDirectory<Key>::remove(uint32_t position) {
  release(position);
  --size_;
}

template <class Key>
void KeyDirectory<Key>::remove_all(std::span<const uint32_t> positions) {
  try {
    leaving_.insert(leaving_.end(), positions.begin(), positions.end());
  } catch (const std::bad_alloc&) {
    for (const uint32_t position : positions) remove(position);
    return;
  }
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < positions.size(); ++i) {
    if (i + kAhead < positions.size()) records_.prefetch(positions[i + kAhead]);
    records_.leave(positions[i]);
  }
  size_ -= std::ssize(positions);
  clean(kCleanedAtFirst);
}

template <class Key>
void KeyDirectory<Key>::clean(size_t keys) {
  constexpr size_t kSlotsAhead = 16, kRecordsAhead = 32;
  for (size_t n = 0; n < keys && cleaned_ < leaving_.size(); ++n, ++cleaned_) {
    const size_t more = leaving_.size() - cleaned_;
    if (more > kRecordsAhead) records_.prefetch(leaving_[cleaned_ + kRecordsAhead]);
    if (more > kSlotsAhead) {
      index_.prefetch(key_hash(records_.key(leaving_[cleaned_ + kSlotsAhead])));
    }
    release(leaving_[cleaned_]);
  }
  if (cleaned_ < leaving_.size()) return;
  leaving_.clear();
  cleaned_ = 0;
}

template <class Key>
void KeyDirectory<Key>::clear() {
  index_.clear();
  records_.clear();
  expiry_.clear();
  leaving_ = {};
  cleaned_ = 0;
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

template <class Key>
[[gnu::always_inline]] inline auto KeyDirectory<Key>::candidate(int64_t position,
                                                                KeyRank rank) const -> Candidate {
  const KeyUse of = use(position);
  const auto at = static_cast<uint32_t>(position);
  return rank == KeyRank::kLastThenCount
             ? Candidate{.first = of.last, .second = of.count, .position = at}
             : Candidate{.first = of.count, .second = of.last, .position = at};
}

// Estimates, by a sample of the keys, a key above the `n` lowest ones and below most others. A
// larger factor gives a higher key.
template <class Key>
auto KeyDirectory<Key>::bound_of_lowest(int64_t n, KeyRank rank, double factor) const
    -> std::optional<Candidate> {
  constexpr int64_t kSample = 16'384;
  constexpr double kDeviations = 6;  // so that hardly any estimate is too low
  std::vector<Candidate> sample;
  const int64_t stride = std::max<int64_t>(1, limit_ / kSample);
  for (int64_t i = 0; i < limit_; i += stride) {
    if (holds(i)) sample.push_back(candidate(i, rank));
  }
  const double share = static_cast<double>(n) / static_cast<double>(size_);
  const auto total = static_cast<double>(sample.size());
  const auto above = static_cast<int64_t>(
      factor * (share * total + kDeviations * std::sqrt(share * total)) + kDeviations);
  if (above >= std::ssize(sample)) return std::nullopt;
  std::ranges::nth_element(sample, sample.begin() + above,
                           [this](const auto& a, const auto& b) { return is_before(a, b); });
  return sample[above];
}

template <class Key>
auto KeyDirectory<Key>::select_lowest(int64_t n, KeyRank rank) const -> std::vector<Candidate> {
  n = std::clamp<int64_t>(n, 0, size_);
  if (n == 0) return {};
  std::vector<Candidate> out;
  for (double factor = 1;; factor *= 2) {
    const std::optional<Candidate> bound = bound_of_lowest(n, rank, factor);
    out.clear();
    out.reserve(bound ? n + n / 4 : size_);
    for (int64_t i = 0; i < limit_; ++i) {
      if (!holds(i)) continue;
      const Candidate of = candidate(i, rank);
      // Most keys are far above the bound.
      if (bound && (of.first > bound->first || !is_before(of, *bound))) continue;
      out.push_back(of);
    }
    if (std::ssize(out) >= n) break;  // else the estimate was too low
  }
  if (std::ssize(out) == n) return out;
  const auto before = [this](const auto& a, const auto& b) { return is_before(a, b); };
  std::vector<Candidate> ordered = out;
  std::ranges::nth_element(ordered, ordered.begin() + n, before);
  std::erase_if(out, [&](const Candidate& of) { return !is_before(of, ordered[n]); });
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
