// How a KeyedTable evicts rows, and its decisions that concern the keys of all processes.
#include <algorithm>
#include <cmath>
#include <tuple>

#include <keel/distribute/embedding/internal/keyed_rounds.h>
#include <keel/distribute/embedding/internal/keyed_table_of.h>
#include <keel/distribute/internal/collective_error.h>
#include <keel/framework/base/errors.h>

namespace keel::distribute {
namespace {

// A key that qualifies. The first ones are admitted: those with the highest counts.
template <class Key>
struct Choice {
  int64_t count = 0;
  Key key{};
  bool operator<(const Choice& other) const {
    return std::tie(other.count, key) < std::tie(count, other.key);
  }
};

}  // namespace

template <class Key>
bool KeyedTableOf<Key>::takes_part(KeyedRound round) const {
  switch (round) {
    case KeyedRound::kPlan:
      return is_bounded();
    case KeyedRound::kChoose:
      return plan_ && plan_->room >= 0;
    case KeyedRound::kSizes:
      return options_.dynamic.capacity > 0 || options_.dynamic.admission.counts.max_pending > 0;
    case KeyedRound::kEvict:
      break;
  }
  return excess_ > 0 || excess_pending_ > 0;
}

template <class Key>
void KeyedTableOf<Key>::write(KeyedRound round, MessageWriter& message) const {
  switch (round) {
    case KeyedRound::kPlan: {
      const Key* smallest = nullptr;
      int64_t count = 0;
      for (const Absent& absent : plan_->absent) {
        if (!absent.qualifies) continue;
        ++count;
        if (smallest == nullptr || absent.key < *smallest) smallest = &absent.key;
      }
      message.put(directory_.size());
      message.put(count);
      if (count > 0) message.put(*smallest);
      break;
    }
    case KeyedRound::kChoose:
      write_choice(message);
      break;
    case KeyedRound::kSizes:
      message.put(directory_.size());
      message.put(filter_.pending().size());
      break;
    case KeyedRound::kEvict:
      write_lowest(directory_, excess_, rank(), message);
      write_lowest(filter_.pending(), excess_pending_, KeyRank::kCountThenLast, message);
      break;
  }
}

template <class Key>
void KeyedTableOf<Key>::read(KeyedRound round, std::span<MessageReader> messages) {
  switch (round) {
    case KeyedRound::kPlan:
      read_plans(messages);
      break;
    case KeyedRound::kChoose:
      read_choices(messages);
      break;
    case KeyedRound::kSizes:
      read_sizes(messages);
      break;
    case KeyedRound::kEvict: {
      const std::vector<uint32_t> rows = read_lowest(directory_, excess_, rank(), messages);
      const std::vector<uint32_t> pending =
          read_lowest(filter_.pending(), excess_pending_, KeyRank::kCountThenLast, messages);
      remove(rows, reason_, statistics_.*counter_);
      filter_.pending().remove_all(pending);
      size_of_all_ -= excess_;
      excess_ = excess_pending_ = 0;
      break;
    }
  }
}

template <class Key>
void KeyedTableOf<Key>::throw_full(const Key& smallest, int64_t candidates, int64_t room) const {
  throw CollectiveError("TPUEmbedding: table '", options_.name, "' with capacity ",
                        options_.dynamic.capacity, " has room for ", room, " rows, but ",
                        candidates, " new ids qualify, the smallest of which is ", smallest,
                        "; increase capacity, set eviction to Eviction::lru or lfu, or set on_full "
                        "to OnFull::kRefuse");
}

template <class Key>
void KeyedTableOf<Key>::read_plans(std::span<MessageReader> messages) {
  int64_t rows = 0, count = 0;
  std::optional<Key> smallest;
  for (MessageReader& message : messages) {
    rows += message.get<int64_t>();
    const auto more = message.get<int64_t>();
    count += more;
    if (more == 0) continue;
    Key key = message.get<Key>();
    if (!smallest || key < *smallest) smallest = std::move(key);
  }
  const int64_t room = std::max<int64_t>(0, options_.dynamic.capacity - rows);
  if (count <= room) return;
  if (options_.dynamic.on_full == OnFull::kError) throw_full(*smallest, count, room);
  plan_->room = room;
}

// Sends no more keys than may be admitted.
template <class Key>
void KeyedTableOf<Key>::write_choice(MessageWriter& message) const {
  std::vector<Choice<Key>> choices;
  for (const Absent& absent : plan_->absent) {
    if (absent.qualifies) choices.push_back({.count = count_of(absent), .key = absent.key});
  }
  const int64_t n = std::min(plan_->room, std::ssize(choices));
  std::ranges::nth_element(choices, choices.begin() + n, std::less<>());
  message.put(n);
  for (int64_t i = 0; i < n; ++i) {
    message.put(choices[i].count);
    message.put(choices[i].key);
  }
}

template <class Key>
void KeyedTableOf<Key>::read_choices(std::span<MessageReader> messages) {
  std::vector<Choice<Key>> choices;
  for (MessageReader& message : messages) {
    for (auto n = message.get<int64_t>(); n > 0; --n) {
      const auto count = message.get<int64_t>();
      choices.push_back({.count = count, .key = message.get<Key>()});
    }
  }
  std::ranges::sort(choices, std::less<>());
  const int64_t room = plan_->room;
  for (Absent* const absent : candidates(*plan_)) {
    const Choice<Key> own = {.count = count_of(*absent), .key = absent->key};
    absent->admitted = room > 0 && !(choices[room - 1] < own);
    plan_->refused += absent->admitted ? 0 : 1;
  }
}

template <class Key>
void KeyedTableOf<Key>::read_sizes(std::span<MessageReader> messages) {
  const DynamicVocabulary& dynamic = options_.dynamic;
  int64_t rows = 0, pending = 0;
  for (MessageReader& message : messages) {
    rows += message.get<int64_t>();
    pending += message.get<int64_t>();
  }
  size_of_all_ = rows;
  const auto excess_of = [&](int64_t size, int64_t limit) {
    if (limit == 0 || size <= limit) return int64_t{0};
    return size - limit +
           static_cast<int64_t>(std::floor(dynamic.headroom * static_cast<double>(limit)));
  };
  excess_ = excess_of(rows, dynamic.capacity);
  excess_pending_ = excess_of(pending, dynamic.admission.counts.max_pending);
}

// A process alone selects by position; see read_lowest().
template <class Key>
void KeyedTableOf<Key>::write_lowest(const KeyDirectory<Key>& of, int64_t n, KeyRank rank,
                                     MessageWriter& message) const {
  if (peers().alone()) return;
  const std::vector<uint32_t> positions = of.lowest_unordered(n, rank);
  message.put(std::ssize(positions));
  for (const uint32_t position : positions) {
    const RankedKey<Key> ranked = of.ranked(position);
    message.put(ranked.key);
    message.put(ranked.count);
    message.put(ranked.last);
  }
}

// Returns the positions of those of the `n` lowest keys that are held here, in no particular order.
template <class Key>
std::vector<uint32_t> KeyedTableOf<Key>::read_lowest(const KeyDirectory<Key>& of, int64_t n,
                                                     KeyRank rank,
                                                     std::span<MessageReader> messages) const {
  if (peers().alone()) return of.lowest_unordered(n, rank);
  std::vector<RankedKey<Key>> all;
  for (MessageReader& message : messages) {
    for (auto count = message.get<int64_t>(); count > 0; --count) {
      RankedKey<Key> ranked;
      ranked.key = message.get<Key>();
      ranked.count = message.get<int64_t>();
      ranked.last = message.get<int64_t>();
      all.push_back(std::move(ranked));
    }
  }
  if (n == 0) return {};
  const auto last = all.begin() + (std::min(n, std::ssize(all)) - 1);
  std::ranges::nth_element(all, last,
                           [rank](const auto& a, const auto& b) { return is_lower(rank, a, b); });
  std::vector<uint32_t> out = of.lowest_unordered(n, rank);
  std::erase_if(out, [&](uint32_t position) { return is_lower(rank, *last, of.ranked(position)); });
  return out;
}

template <class Key>
void KeyedTableOf<Key>::remove_lowest(int64_t most, EvictionReason reason,
                                      int64_t DynamicTableStatistics::* counter) {
  refresh_size();
  excess_ = std::max<int64_t>(0, size() - most);
  reason_ = reason;
  counter_ = counter;
  KeyedTable* const table = this;
  run_round({&table, 1}, KeyedRound::kEvict);
}

template <class Key>
bool KeyedTableOf<Key>::is_bounded() const {
  return options_.dynamic.capacity > 0 &&
         options_.dynamic.eviction.policy == Eviction::Policy::kNone;
}

// Returns the keys of this process that qualify.
template <class Key>
auto KeyedTableOf<Key>::candidates(Plan& plan) const -> std::vector<Absent*> {
  std::vector<Absent*> out;
  for (Absent& absent : plan.absent) {
    if (absent.qualifies) out.push_back(&absent);
  }
  return out;
}

template <class Key>
KeyRank KeyedTableOf<Key>::rank() const {
  return options_.dynamic.eviction.policy == Eviction::Policy::kLfu ? KeyRank::kCountThenLast
                                                                    : KeyRank::kLastThenCount;
}

template <class Key>
void KeyedTableOf<Key>::remove(std::span<const uint32_t> positions, EvictionReason reason,
                               int64_t& counter) {
  if (!callbacks_.empty()) {
    for (const uint32_t position : positions) {
      removed_.push_back({.key = directory_.key(position),
                          .row = first_key_row() + position,
                          .count = directory_.use(position).count,
                          .reason = reason});
    }
  }
  directory_.remove_all(positions);
  counter += std::ssize(positions);
}

template <class Key>
void KeyedTableOf<Key>::report_removed() {
  if (removed_.empty()) return;
  std::vector<Removed> removed = std::move(removed_);
  removed_.clear();
  std::ranges::sort(removed, {}, &Removed::key);
  EvictedRows out;
  std::vector<Key> keys;
  for (const Removed& one : removed) {
    keys.push_back(one.key);
    out.counts.push_back(one.count);
    out.reasons.push_back(one.reason);
  }
  out.keys = Tensor::from(keys, {std::ssize(keys)});
  for (int part = 0; part <= static_cast<int>(options_.slots.size()); ++part) {
    const int64_t width = shard_->width(part);
    Tensor values = Tensor::uninitialized({std::ssize(removed), width}, DType::kFloat32);
    float* to = values.template mutable_data<float>().data();
    for (size_t i = 0; i < removed.size(); ++i) {
      shard_->read(part, removed[i].row, to + static_cast<int64_t>(i) * width);
    }
    if (part == 0) {
      out.rows = std::move(values);
    } else {
      out.slots.emplace(options_.slots[part - 1].name, std::move(values));
    }
  }
  call_back(out);
}

template <class Key>
void KeyedTableOf<Key>::begin_finish() {
  const EvictionOptions& options = options_.dynamic.eviction.options;
  const int64_t now = time_of_update();
  if ((statistics_.updates + 1) % options.interval == 0) {
    if (options.ttl > 0) {
      remove(directory_.take_expired(now - options.ttl), EvictionReason::kTtl,
             statistics_.evicted_ttl);
    }
    if (options.min_l2_norm > 0) {
      remove(below_norm(options.min_l2_norm, admitted_), EvictionReason::kNorm,
             statistics_.evicted_norm);
    }
  }
  filter_.drop_window(now);
  reason_ = EvictionReason::kCapacity;
  counter_ = &DynamicTableStatistics::evicted_capacity;
}

template <class Key>
void KeyedTableOf<Key>::end_finish() {
  const EvictionOptions& options = options_.dynamic.eviction.options;
  filter_.end_update(statistics_.updates);
  const int64_t ended = statistics_.updates + 1;
  if (options.halve_every > 0 && ended % options.halve_every == 0) directory_.halve_counts();
  statistics_.updates = ended;
  version_ = next_version();
  is_committed_ = false;
  plan_.reset();
  report_removed();
}

#define KEEL_INSTANTIATE(Key)                                                                   \
  template bool KeyedTableOf<Key>::takes_part(KeyedRound) const;                                \
  template void KeyedTableOf<Key>::write(KeyedRound, MessageWriter&) const;                     \
  template void KeyedTableOf<Key>::read(KeyedRound, std::span<MessageReader>);                  \
  template bool KeyedTableOf<Key>::is_bounded() const;                                          \
  template KeyRank KeyedTableOf<Key>::rank() const;                                             \
  template void KeyedTableOf<Key>::remove(std::span<const uint32_t>, EvictionReason, int64_t&); \
  template void KeyedTableOf<Key>::report_removed();                                            \
  template void KeyedTableOf<Key>::begin_finish();                                              \
  template void KeyedTableOf<Key>::end_finish();                                                \
  template void KeyedTableOf<Key>::remove_lowest(int64_t, EvictionReason,                       \
                                                 int64_t DynamicTableStatistics::*);
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
