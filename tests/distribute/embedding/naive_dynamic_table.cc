#include "tests/distribute/embedding/naive_dynamic_table.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace keel::distribute::naive {

DynamicTable::DynamicTable(const DynamicVocabulary& options, const InitialRows& draws)
    : o(options), draws_(draws), fallback(options.not_admitted.fallback_rows(), 0.5F) {
  if (o.admission.kind == Admission::Kind::kSketch) {
    cells_.resize(size_t{1024} * 4 * o.admission.cells.width);
  }
}

DynamicTable::Read DynamicTable::read(int64_t key, bool training) const {
  if (const auto row = rows.find(key); row != rows.end()) {
    return {.kind = Read::Kind::kHit, .value = row->second.value};
  }
  const bool full = o.capacity > 0 && std::ssize(rows) >= o.capacity;
  if (training && qualifies(key) && !(full && o.on_full == OnFull::kRefuse)) {
    return {.kind = Read::Kind::kFresh, .value = static_cast<float>(key)};
  }
  switch (o.not_admitted.kind) {
    case NotAdmitted::Kind::kZero:
      return {.kind = Read::Kind::kZero};
    case NotAdmitted::Kind::kIgnore:
      return {.kind = Read::Kind::kNothing};
    case NotAdmitted::Kind::kDefaultRow:
      return {.kind = Read::Kind::kFallback, .value = fallback[0]};
    case NotAdmitted::Kind::kHashed:
      break;
  }
  const int64_t k = o.not_admitted.rows, b = ((key % k) + k) % k;
  return {.kind = Read::Kind::kFallback, .fallback = b, .value = fallback[b]};
}

void DynamicTable::evaluate(const Batches& batches) {
  for (const auto& batch : batches) {
    for (const int64_t key : batch) {
      ++s.inference_looked_up;
      if (rows.contains(key)) ++s.inference_hits;
    }
  }
}

bool DynamicTable::train(const Batches& batches) {
  const int64_t now = time_of_update();
  std::map<int64_t, int64_t> c;
  std::vector<std::pair<int64_t, Read>> reads;
  for (const auto& batch : batches) {
    for (const int64_t key : batch) {
      ++c[key];
      reads.emplace_back(key, read(key, true));
    }
  }
  std::vector<int64_t> candidates;
  for (const auto& [key, n] : c) {
    if (!rows.contains(key) && qualifies(key)) candidates.push_back(key);
  }
  if (o.eviction.policy == Eviction::Policy::kNone && o.capacity > 0) {
    const int64_t room = o.capacity - std::ssize(rows);
    if (std::ssize(candidates) > room) {
      if (o.on_full == OnFull::kError) return false;
      std::ranges::stable_sort(candidates, [&](int64_t a, int64_t b) {
        return seen(a) + c[a] > seen(b) + c[b];  // equal counts keep the order of keys
      });
      s.refused += std::ssize(candidates) - room;
      candidates.resize(room);
    }
  }
  for (const auto& [key, read] : reads) {
    ++s.looked_up;
    ++(read.kind == Read::Kind::kHit     ? s.hits
       : read.kind == Read::Kind::kFresh ? s.fresh
                                         : s.not_admitted);
  }
  std::set<int64_t> admitted(candidates.begin(), candidates.end());
  for (const auto& [key, n] : c) {
    if (const auto row = rows.find(key); row != rows.end()) {
      row->second.count += n;
      row->second.last = now;
    } else if (admitted.contains(key)) {
      const int64_t before = pending.contains(key) ? pending[key].count : 0;
      rows[key] = {static_cast<float>(key), before + n, now, now};
      pending.erase(key);
      ++s.admitted;
    } else if (o.admission.kind == Admission::Kind::kCount && o.admission.occurrences > 1) {
      pending[key].count += n;
      pending[key].last = now;
    } else if (!cells_.empty()) {
      for (uint8_t* const cell : cells_of(key)) {
        *cell = static_cast<uint8_t>(std::min<int64_t>(255, *cell + n));
      }
    }
  }
  std::set<int64_t> dropped;
  for (const auto& [key, read] : reads) {
    if (read.kind == Read::Kind::kFallback) fallback[read.fallback] += 0.25F;
    if (read.kind != Read::Kind::kHit && read.kind != Read::Kind::kFresh) continue;
    if (rows.contains(key)) {
      rows[key].value += 0.25F;
    } else {
      dropped.insert(key);
    }
  }
  s.dropped_gradients += std::ssize(dropped);
  evict(now, admitted);
  end(now);
  return true;
}

int64_t DynamicTable::prune(const PruneOptions& p) {
  const int64_t before = std::ssize(rows), now = time_between();
  std::erase_if(rows, [&](const auto& e) { return p.ttl > 0 && now - e.second.last >= p.ttl; });
  std::erase_if(rows, [&](const auto& e) { return std::abs(e.second.value) < p.min_l2_norm; });
  std::erase_if(rows, [&](const auto& e) { return e.second.count < p.min_count; });
  if (p.max_rows >= 0) keep(p.max_rows);
  s.pruned += before - std::ssize(rows);
  return before - std::ssize(rows);
}

void DynamicTable::erase(const std::vector<int64_t>& keys) {
  for (const int64_t key : keys) {
    s.erased += static_cast<int64_t>(rows.erase(key));
    pending.erase(key);
  }
}

bool DynamicTable::assign(const std::map<int64_t, float>& values) {
  int64_t added = 0;
  for (const auto& [key, value] : values) added += rows.contains(key) ? 0 : 1;
  if (o.capacity > 0 && std::ssize(rows) + added > o.capacity) return false;
  for (const auto& [key, value] : values) {
    if (!rows.contains(key)) {
      rows[key] = {0, 0, time_between(), time_between()};
      pending.erase(key);
      ++s.assigned;
    }
    rows[key].value = value;
  }
  return true;
}

DynamicTableStatistics DynamicTable::statistics() const {
  DynamicTableStatistics out = s;
  out.size = std::ssize(rows);
  out.pending = std::ssize(pending);
  return out;
}

std::array<uint8_t*, 4> DynamicTable::cells_of(int64_t key) {
  std::array<uint8_t*, 4> out{};
  const uint64_t hash = key_hash(key);
  const auto width = static_cast<uint64_t>(o.admission.cells.width);
  for (uint64_t row = 0; row < 4; ++row) {
    // Long double has the 64 bits that the product needs.
    const auto part = static_cast<long double>(kernels::mixed_key(hash, row + 1));
    const auto column = static_cast<uint64_t>(part * static_cast<long double>(width) / 0x1p64L);
    out[row] = &cells_[((hash >> 54U) * 4 + row) * width + column];
  }
  return out;
}

int64_t DynamicTable::seen(int64_t key) const {
  if (!cells_.empty()) {
    const auto cells = const_cast<DynamicTable*>(this)->cells_of(key);
    return std::min({*cells[0], *cells[1], *cells[2], *cells[3]});
  }
  const auto found = pending.find(key);
  return found == pending.end() ? 0 : found->second.count;
}

bool DynamicTable::qualifies(int64_t key) const {
  switch (o.admission.kind) {
    case Admission::Kind::kAlways:
      return true;
    case Admission::Kind::kProbability:
      return draws_.draw(static_cast<uint64_t>(key), s.updates) < o.admission.share;
    default:
      return seen(key) >= o.admission.occurrences - 1;
  }
}

void DynamicTable::evict(int64_t now, const std::set<int64_t>& admitted) {
  const EvictionOptions& e = o.eviction.options;
  if ((s.updates + 1) % e.interval == 0) {
    if (e.ttl > 0) {
      s.evicted_ttl += static_cast<int64_t>(
          std::erase_if(rows, [&](const auto& x) { return now - x.second.last >= e.ttl; }));
    }
    s.evicted_norm += static_cast<int64_t>(std::erase_if(rows, [&](const auto& x) {
      return std::abs(x.second.value) < e.min_l2_norm && !admitted.contains(x.first);
    }));
  }
  if (o.capacity > 0 && std::ssize(rows) > o.capacity) {
    const int64_t before = std::ssize(rows);
    keep(o.capacity - static_cast<int64_t>(o.headroom * static_cast<double>(o.capacity)));
    s.evicted_capacity += before - std::ssize(rows);
  }
}

void DynamicTable::keep(int64_t most) {
  while (std::ssize(rows) > most) {
    const bool lfu = o.eviction.policy == Eviction::Policy::kLfu;
    rows.erase(std::ranges::min_element(rows, {}, [&](const auto& e) {
      const auto [value, count, last, born] = e.second;
      return lfu ? std::tuple(count, last, e.first) : std::tuple(last, count, e.first);
    }));
  }
}

void DynamicTable::end(int64_t now) {
  const auto [window, max_pending] = o.admission.counts;
  std::erase_if(pending,
                [&](const auto& e) { return window > 0 && now - e.second.last >= window; });
  if (max_pending > 0 && std::ssize(pending) > max_pending) {
    const int64_t left =
        max_pending - static_cast<int64_t>(o.headroom * static_cast<double>(max_pending));
    while (std::ssize(pending) > left) {
      pending.erase(std::ranges::min_element(pending, {}, [](const auto& e) {
        return std::tuple(e.second.count, e.second.last, e.first);
      }));
    }
  }
  const auto due = [&](int64_t every) { return every > 0 && (s.updates + 1) % every == 0; };
  if (due(o.admission.cells.halve_every)) {
    for (uint8_t& cell : cells_) cell /= 2;
  }
  if (due(o.eviction.options.halve_every)) {
    for (auto& [key, row] : rows) row.count /= 2;
  }
  ++s.updates;
}

}  // namespace keel::distribute::naive
