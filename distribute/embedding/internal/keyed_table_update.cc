// How a KeyedTable is updated: counts and admission, row by row.
#include <algorithm>
#include <utility>

#include <keel/distribute/embedding/internal/keyed_table_of.h>
#include <keel/framework/base/errors.h>

namespace keel::distribute {

template <class Key>
KeyedTableOf<Key>::KeyedTableOf(const KeyedTableOptions& options)
    : KeyedTable(options), filter_(options.dynamic.admission) {
  if (options.dynamic.eviction.options.ttl > 0) directory_.track_expiry();
  set_rounding_numbers();
}

template <class Key>
void KeyedTableOf<Key>::set_rounding_numbers() {
  shard_->set_rounding_numbers([this](int64_t row) {
    return row < first_key_row() ? kernels::mixed_key(2, static_cast<uint64_t>(row - 1))
                                 : stream_key(directory_.key(row - first_key_row()));
  });
}

template <class Key>
bool KeyedTableOf<Key>::is_row(int64_t row) const {
  return row < first_key_row() ? row > 0 : directory_.holds(row - first_key_row());
}

// Adds up the occurrences of all replicas. Keys without a row are collected in the order of the
// replicas, but nothing depends on that order.
template <class Key>
typename KeyedTableOf<Key>::Plan KeyedTableOf<Key>::merge(
    std::span<const std::shared_ptr<KeyedLookup>> lookups) const {
  Plan plan;
  plan.lookups.assign(lookups.begin(), lookups.end());
  size_t most = 0;
  for (const auto& lookup : lookups) most += static_cast<Lookup&>(*lookup).entries.size();
  DistinctKeys<Key> distinct(lookups.size() == 1 ? 0 : most);
  for (const auto& one : lookups) {
    auto& lookup = static_cast<Lookup&>(*one);
    const bool is_stale = lookup.version != version_;
    for (size_t i = 0; i < lookup.entries.size(); ++i) {
      Entry& entry = lookup.entries[i];
      const Key& key = lookup.distinct.key(i);
      const uint64_t hash = lookup.distinct.hash(i);
      if (!peers().owns(hash)) {
        entry.now = -1;  // is counted by its owner
        continue;
      }
      const bool was_hit = entry.found >= first_key_row();
      if (was_hit && !is_stale) {
        entry.now = entry.found - first_key_row();
        continue;
      }
      const uint32_t position = is_stale ? directory_.find(key, hash) : KeyIndex::kNone;
      if (position != KeyIndex::kNone) {
        entry.now = position;
        continue;
      }
      // The keys of one lookup are distinct already.
      const size_t number = lookups.size() == 1 ? plan.absent.size() : distinct.number(key, hash);
      if (number == plan.absent.size()) plan.absent.push_back({.key = key, .hash = hash});
      Absent& absent = plan.absent[number];
      absent.count += entry.count;
      absent.contributes = absent.contributes || was_hit || entry.found == kFresh;
      // The lookup has computed the row, unless another process did, or an older state is meant.
      if (entry.found == kFresh && !is_stale && lookup.reads[i] < 0) {
        absent.initial = &lookup.given_rows[(-1 - lookup.reads[i]) * options_.dim];
      }
      entry.now = -1 - static_cast<int64_t>(number);
    }
  }
  return plan;
}

template <class Key>
void KeyedTableOf<Key>::prepare_update(std::span<const std::shared_ptr<KeyedLookup>> lookups) {
  plan_.reset();
  // An update that failed after its commit has admitted keys that earlier lookups did not find.
  if (std::exchange(is_committed_, false)) version_ = next_version();
  Plan plan = merge(lookups);
  int64_t admitted = 0;
  for (Absent& absent : plan.absent) {
    absent.qualifies = filter_.qualifies(absent.key, absent.hash, statistics_.updates, *initial_);
    absent.admitted = absent.qualifies;
    admitted += absent.admitted ? 1 : 0;
  }
  if (is_bounded()) {
    admitted = std::min(admitted, std::max<int64_t>(0, options_.dynamic.capacity - size()));
  }
  shard_->grow(row_limit() + admitted);
  plan_ = std::move(plan);
}

template <class Key>
int64_t KeyedTableOf<Key>::create_row(const Key& key, uint64_t hash, const KeyUse& use,
                                      const float* initial) {
  shard_->grow(row_limit() + 1);
  std::vector<float> computed;
  if (initial == nullptr) {
    computed.resize(options_.dim);
    initial_->fill(key, computed);
    initial = computed.data();
  }
  const int64_t row = first_key_row() + directory_.add(key, hash, use);
  shard_->reset(row, initial);
  shard_->prefetch_to_write(first_key_row() + directory_.next_position());
  return row;
}

template <class Key>
void KeyedTableOf<Key>::admit(Absent& absent, int64_t now) {
  KeyUse use = {.last = now, .born = now};
  use.add(filter_.take(absent.key, absent.hash), now);
  use.add(absent.count, now);
  absent.row = create_row(absent.key, absent.hash, use, absent.initial);
  admitted_.push_back(static_cast<uint32_t>(absent.row - first_key_row()));
  ++statistics_.admitted;
}

template <class Key>
void KeyedTableOf<Key>::count_uses(std::span<const Entry> entries, int64_t now) {
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (i + kAhead < entries.size() && entries[i + kAhead].now >= 0) {
      directory_.prefetch_use(entries[i + kAhead].now);
    }
    if (entries[i].now >= 0) directory_.add_use(entries[i].now, entries[i].count, now);
  }
}

template <class Key>
void KeyedTableOf<Key>::commit_update() {
  const int64_t now = time_of_update();
  is_committed_ = true;
  admitted_.clear();
  for (const auto& one : plan_->lookups) {
    const auto& lookup = static_cast<const Lookup&>(*one);
    count_uses(lookup.entries, now);
    statistics_.looked_up += lookup.hits + lookup.fresh + lookup.not_admitted;
    statistics_.hits += lookup.hits;
    statistics_.fresh += lookup.fresh;
    statistics_.not_admitted += lookup.not_admitted;
  }
  // The processes that own keys count them; each counts the lookups of its own replicas.
  constexpr size_t kAhead = 16;
  for (size_t i = 0; i < plan_->absent.size(); ++i) {
    Absent& absent = plan_->absent[i];
    if (i + kAhead < plan_->absent.size()) {
      directory_.prefetch_add(plan_->absent[i + kAhead].hash);
    }
    if (absent.admitted) {
      admit(absent, now);
    } else {
      filter_.observe(absent.key, absent.hash, absent.count, now);
      if (absent.contributes) ++statistics_.dropped_gradients;
    }
  }
  statistics_.refused += plan_->refused;
}

template <class Key>
void KeyedTableOf<Key>::resolve(KeyedLookup& lookup_base) const {
  auto& lookup = static_cast<Lookup&>(lookup_base);
  // If all keys have rows here, their numbers are those of the rows that were read.
  if (lookup.version == version_ && lookup.fresh == 0 && lookup.remote.empty()) return;
  std::vector<int64_t>& target = lookup.targets;
  target.resize(lookup.entries.size());
  for (size_t i = 0; i < target.size(); ++i) {
    const auto [found, count, now] = lookup.entries[i];
    if (found >= 0 && found < first_key_row()) {
      target[i] = found;  // row 0 or a fallback row
    } else if (found == kIgnored || !peers().owns(lookup.distinct.hash(i))) {
      target[i] = 0;  // those of other processes are set below
    } else {
      target[i] = now >= 0 ? first_key_row() + now : plan_->absent[-1 - now].row;
    }
  }
  for (size_t i = 0; i < lookup.remote.size(); ++i) {
    const int64_t found = lookup.entries[lookup.remote[i]].found;
    if (found == kFresh || found == kRemote) {
      target[lookup.remote[i]] = row_limit() + static_cast<int64_t>(i);
    }
  }
  for (size_t f = 0; f < lookup.features.size(); ++f) {
    const std::vector<uint32_t>& numbers = lookup.numbers[f];
    Tensor ids = Tensor::uninitialized({std::ssize(numbers)}, DType::kInt64);
    const std::span<int64_t> to = ids.template mutable_data<int64_t>();
    for (size_t i = 0; i < numbers.size(); ++i) to[i] = target[numbers[i]];
    lookup.features[f].ids = std::move(ids);
  }
}

template <class Key>
std::vector<uint32_t> KeyedTableOf<Key>::expired(int64_t ttl, int64_t now) const {
  std::vector<uint32_t> out;
  for (int64_t i = 0; i < directory_.limit(); ++i) {
    if (directory_.holds(i) && now - directory_.use(i).last >= ttl) {
      out.push_back(static_cast<uint32_t>(i));
    }
  }
  return out;
}

template <class Key>
std::vector<uint32_t> KeyedTableOf<Key>::below_norm(double norm_limit,
                                                    std::span<const uint32_t> exempt) const {
  std::vector<char> is_exempt(directory_.limit());
  for (const uint32_t position : exempt) is_exempt[position] = 1;
  std::vector<uint32_t> out;
  for (int64_t i = 0; i < directory_.limit(); ++i) {
    if (directory_.holds(i) && is_exempt[i] == 0 && norm(first_key_row() + i) < norm_limit) {
      out.push_back(static_cast<uint32_t>(i));
    }
  }
  return out;
}

#define KEEL_INSTANTIATE(Key)                                                                     \
  template KeyedTableOf<Key>::KeyedTableOf(const KeyedTableOptions&);                             \
  template void KeyedTableOf<Key>::set_rounding_numbers();                                        \
  template bool KeyedTableOf<Key>::is_row(int64_t) const;                                         \
  template void KeyedTableOf<Key>::prepare_update(std::span<const std::shared_ptr<KeyedLookup>>); \
  template void KeyedTableOf<Key>::count_uses(std::span<const Entry>, int64_t);                   \
  template void KeyedTableOf<Key>::commit_update();                                               \
  template void KeyedTableOf<Key>::resolve(KeyedLookup&) const;                                   \
  template int64_t KeyedTableOf<Key>::create_row(const Key&, uint64_t, const KeyUse&,             \
                                                 const float*);                                   \
  template std::vector<uint32_t> KeyedTableOf<Key>::expired(int64_t, int64_t) const;              \
  template std::vector<uint32_t> KeyedTableOf<Key>::below_norm(double, std::span<const uint32_t>) \
      const;
KEEL_INSTANTIATE(int64_t)
KEEL_INSTANTIATE(std::string)
#undef KEEL_INSTANTIATE

}  // namespace keel::distribute
