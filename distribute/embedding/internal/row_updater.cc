#include <keel/distribute/embedding/internal/row_updater.h>

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <utility>

#include <keel/distribute/embedding/internal/keyed_batch_lookup.h>
#include <keel/distribute/internal/collective_error.h>
#include <keel/distribute/internal/placement.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/kernels/processor.h>
#include <keel/framework/update_rule.h>

namespace keel::distribute {
namespace {

constexpr int64_t kGroupsPerBlock = 1024;  // unit of work of a thread

// The number of rows that are summed and then updated together, small enough for their sums to stay
// in the L1 cache. Summing prefetches the rows that are updated next. On processors that prefetch
// into the L2 cache the number is smaller, because the cache takes all prefetches of a turn at
// once.
constexpr int64_t kMostAtOnce = 64;
int64_t rows_at_once(int64_t dim) {
  return std::clamp<int64_t>((kernels::kPrefetchesIntoL2 ? 512 : 4096) / dim, 4, kMostAtOnce);
}

}  // namespace

RowUpdater::RowUpdater(EngineTables& tables, GradientSums& sums, GroupBuffers& buffers)
    : tables_(tables), sums_(sums), buffers_(buffers), numbers_(tables.size()) {}

void RowUpdater::begin(Communicator& communicator, PendingUpdate& update) {
  const profile::Scope scope(profile::Phase::kUpdate, "tables");
  if (tables_.has_keyed()) admit_keys(communicator, update);
  fill_gradients(update);
  // Other replicas may still read the sums that this replica listed for the previous update.
  communicator.wait_for_arrivals();
  list_sums(communicator, update);
  if (communicator.placement().processes() > 1) update.posted = post_sums(communicator);
  update.has_begun = true;
}

// Every replica throws the same error if a table is full.
void RowUpdater::admit_keys(Communicator& communicator, PendingUpdate& update) {
  if (!update.has_admitted) {
    // Other replicas may still read or write rows for the previous update.
    if (communicator.placement().processes() > 1) {
      auto received = exchange_uses(communicator, tables_, *update.ticket, label_);
      for (int r = 0; r < communicator.size(); ++r) {
        if (!received[r].empty()) sums_.uses[r] = std::move(received[r]);
      }
    }
    sums_.uses[communicator.rank()] = update.ticket->keyed;
    communicator.local_barrier(label_, [&] { admit_together(); });
    if (sums_.error != nullptr) std::rethrow_exception(sums_.error);
    update.has_admitted = true;
  }
  tables_.resolve_keys(*update.ticket);
}

// One replica of each process admits the ids of all.
void RowUpdater::admit_together() {
  sums_.error = nullptr;
  std::vector<KeyedLookups> lookups(tables_.size());
  for (const KeyedLookups& of_replica : sums_.uses) {
    for (size_t t = 0; t < of_replica.size(); ++t) {
      if (of_replica[t] != nullptr) lookups[t].push_back(of_replica[t]);
    }
  }
  try {
    tables_.admit_keys(lookups);
  } catch (...) {
    sums_.error = std::current_exception();
  }
}

// Gradients for row 0 of a table for unbounded ids are dropped.
int64_t RowUpdater::first_group(size_t table) const {
  const kernels::RowGroups& groups = gradients_[table].groups();
  return tables_.keyed(table) != nullptr && groups.size() > 0 && groups.id(0) == 0 ? 1 : 0;
}

void RowUpdater::collect(Communicator& communicator, PendingUpdate& update) {
  const profile::Scope scope(profile::Phase::kUpdate, "tables");
  if (communicator.placement().processes() > 1) receive_sums(communicator, update.posted);
  communicator.local_barrier(label_);
  // All replicas have arrived, so either all of them count this update or, after a failure, none.
  update.writes = true;
  ++updates_done_;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_.is_updated(t)) numbers_[t].advance(update.steps[t].iteration);
  }
}

// A pending update that fails before it writes rows stays pending, so that it is not lost. Once it
// has written rows it is not retried, because it would update these rows twice. Nor is an update
// that all replicas refuse, for example because a table is full: the calls that make room apply
// pending updates first.
void RowUpdater::apply_pending(Communicator& communicator) {
  while (!pending_.empty()) {
    PendingUpdate& update = pending_.front();
    try {
      // An update whose run has failed begins again. With several processes the job is over
      // instead.
      const bool alone = communicator.placement().processes() == 1;
      if (alone || !update.has_begun) begin(communicator, update);
      collect(communicator, update);
      update_rows(communicator, update);
    } catch (const CollectiveError&) {
      pending_.erase(pending_.begin());
      throw;
    } catch (...) {
      if (update.writes) pending_.erase(pending_.begin());
      throw;
    }
    pending_.erase(pending_.begin());
  }
}

int64_t RowUpdater::changed_rows(size_t table, const Communicator& communicator) const {
  if (applies_directly(table, communicator)) return gradients_[table].groups().size();
  int64_t out = 0;
  for (const RowGradientList& list : sums_.of(updates_done_)) out += std::ssize(list.ids(table));
  return out;
}

void RowUpdater::fill_gradients(const PendingUpdate& update) {
  // There are no groups if no update was expected or if a failed attempt has used them.
  std::vector<kernels::RowGroups> groups = std::exchange(update.ticket->groups, {});
  if (groups.empty()) tables_.group_ids(update.ticket->features, groups);
  const profile::Scope scope(profile::Phase::kUpdate, "fill gradients");
  gradients_.resize(tables_.size());
  parallel_for(static_cast<int64_t>(tables_.size()), 1, [&](int64_t first, int64_t end) {
    std::vector<PooledGradient> features;
    for (int64_t t = first; t < end; ++t) {
      if (!tables_.is_updated(t)) continue;
      if (tables_.keyed(t) != nullptr) {
        tables_.group_ids(update.ticket->features, t, tables_.row_limit(t, *update.ticket),
                          groups[t]);
      }
      features.clear();
      for (const int f : tables_.features_of(t)) {
        features.push_back(
            {.bags = bags_of(update.ticket->features[f]),
             .gradient = update.gradients[f] ? update.gradients[f].data<float>().data() : nullptr});
      }
      gradients_[t].exchange_groups(groups[t]);
      gradients_[t].fill(features, tables_[t].combiner, tables_.dims()[t]);
    }
  });
  buffers_.put(groups);
}

// If no other replica contributes to a row, its sum can be applied immediately and need not be
// stored.
bool RowUpdater::applies_directly(size_t table, const Communicator& communicator) const {
  return communicator.size() == 1 && tables_[table].update.lazy;
}

// Stores this replica's sums by the process that holds the rows.
void RowUpdater::list_sums(const Communicator& communicator, const PendingUpdate& update) {
  const profile::Scope scope(profile::Phase::kUpdate, "sum rows");
  const Placement& placement = communicator.placement();
  outgoing_.resize(placement.processes());
  std::vector<RowGradientList>& lists = sums_.of(updates_done_ + 1);
  const auto list_of = [&](int process) -> RowGradientList& {
    return process == placement.process ? lists[communicator.rank()] : outgoing_[process];
  };
  for (RowGradientList& list : outgoing_) list.clear();
  lists[communicator.rank()].restart(sums_.of(updates_done_)[communicator.rank()]);
  for (size_t t = 0; t < tables_.size(); ++t) {
    const bool accumulates = tables_[t].update.use_gradient_accumulation;
    if (tables_.keyed(t) != nullptr && placement.processes() > 1) {
      if (tables_.is_updated(t)) list_keyed_sums(communicator, t, *update.ticket->keyed[t]);
    } else if (tables_.is_updated(t) && !applies_directly(t, communicator)) {
      const kernels::RowGroups& groups = gradients_[t].groups();
      // Split the groups into runs of rows that one process holds.
      for (int64_t first = first_group(t), end = 0; first < groups.size(); first = end) {
        const auto process_at = [&](int64_t g) {
          return placement.process_of(tables_.replica_of_owner(t, groups.id(g)));
        };
        const int process = placement.processes() == 1 ? 0 : process_at(first);
        end = placement.processes() == 1 ? groups.size() : first + 1;
        while (end < groups.size() && process_at(end) == process) ++end;
        list_of(process).append(groups, first, end, gradients_[t].sources(), tables_.dims()[t],
                                !accumulates);
      }
    }
    for (int q = 0; q < placement.processes(); ++q) list_of(q).end_table();
  }
}

// The groups of a table for unbounded ids are those of fallback rows, which all processes update,
// of rows that are held here, and of keys of the other processes, by process.
void RowUpdater::list_keyed_sums(const Communicator& communicator, size_t table,
                                 const KeyedLookup& lookup) {
  const Placement& placement = communicator.placement();
  RowGradientList& own = sums_.of(updates_done_ + 1)[communicator.rank()];
  const kernels::RowGroups& groups = gradients_[table].groups();
  const auto end_below = [&](int64_t first, int64_t limit) {
    while (first < groups.size() && groups.id(first) < limit) ++first;
    return first;
  };
  const auto append = [&](RowGradientList& list, int64_t first, int64_t end, int64_t shift) {
    if (first == end) return;
    list.append(groups, first, end, gradients_[table].sources(), tables_.dims()[table],
                !tables_[table].update.use_gradient_accumulation, shift);
  };
  const int64_t first_key_row = tables_.keyed(table)->first_key_row();
  const int64_t row_limit = tables_.row_limit(table);
  const int64_t begin = first_group(table);
  const int64_t end_of_fallback = end_below(begin, first_key_row);
  int64_t first = end_below(end_of_fallback, row_limit);
  append(own, begin, first, 0);
  int64_t first_remote = 0;
  for (int q = 0; q < placement.processes(); ++q) {
    const int64_t end = end_below(first, row_limit + lookup.remote_ends[q]);
    if (q != placement.process) {
      append(outgoing_[q], begin, end_of_fallback, 0);
      // The owner knows the keys by their positions in what it has been sent.
      append(outgoing_[q], first, end, first_key_row - (row_limit + first_remote));
    }
    first = end;
    first_remote = lookup.remote_ends[q];
  }
}

// Replaces the positions of keys in what a replica of another process has sent by their rows.
void RowUpdater::renumber_keyed(RowGradientList& list, const KeyedLookups& uses) const {
  for (size_t t = 0; t < tables_.size(); ++t) {
    const KeyedTable* const table = tables_.updated_keyed(t);
    if (table == nullptr) continue;
    list.renumber(t, tables_.dims(), [&](int64_t id) {
      return id < table->first_key_row() ? id : uses[t]->targets[id - table->first_key_row()];
    });
  }
}

// The sums for a process are sent to one of its replicas, which stores them for all. A message has
// the ids as 64-bit words, then the values.
int64_t RowUpdater::post_sums(Communicator& communicator) {
  const Placement& placement = communicator.placement();
  std::vector<std::vector<std::byte>> messages(placement.processes());
  std::vector<Bytes> send(communicator.size());
  for (int q = 0; q < placement.processes(); ++q) {
    if (q == placement.process) continue;
    const int there = placement.first[q + 1] - placement.first[q];
    const int to = placement.first[q] + communicator.rank() % there;
    const Bytes ids = as_bytes_of<int64_t>(outgoing_[q].counts_and_ids(tables_.size()));
    const Bytes values = as_bytes_of<float>(outgoing_[q].values());
    std::vector<std::byte>& message = messages[q];
    message.reserve(ids.size() + values.size());
    message.insert(message.end(), ids.begin(), ids.end());
    message.insert(message.end(), values.begin(), values.end());
    send[to] = message;
  }
  return communicator.post_to_processes(send, label_);
}

void RowUpdater::receive_sums(Communicator& communicator, int64_t posted) {
  std::vector<RowGradientList>& lists = sums_.of(updates_done_ + 1);
  const std::vector<Bytes> received = communicator.collect_posted(posted, label_);
  for (int r = 0; r < communicator.size(); ++r) {
    if (received[r].empty()) continue;
    const auto words = as_elements<int64_t>(received[r]);
    int64_t ids = static_cast<int64_t>(tables_.size());
    for (size_t t = 0; t < tables_.size(); ++t) ids += words[t];
    const Bytes values = received[r].subspan(ids * sizeof(int64_t));
    lists[r].assign(words.first(ids), as_elements<float>(values), tables_.size());
    if (tables_.has_keyed()) renumber_keyed(lists[r], sums_.uses[r]);
  }
}

// Returns the rounding keys of the current update.
RowKeys RowUpdater::keys_of(size_t table) const {
  const Number& number = numbers_[table];
  const uint64_t key =
      kernels::mixed_key(tables_.rounding_key(table), static_cast<uint64_t>(number.iteration));
  return RowKeys(kernels::mixed_key(key, static_cast<uint64_t>(number.repeats)));
}

// Updates the rows of tables of which no other replica has sums.
void RowUpdater::update_directly(const PendingUpdate& update, const Communicator& communicator) {
  struct Block {
    size_t table;
    int64_t first, end;
  };
  std::vector<Block> blocks;
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (!tables_.is_updated(t) || !applies_directly(t, communicator)) continue;
    const int64_t groups = gradients_[t].groups().size();
    for (int64_t g = first_group(t); g < groups; g += kGroupsPerBlock) {
      blocks.push_back({t, g, std::min(g + kGroupsPerBlock, groups)});
    }
  }
  parallel_for(std::ssize(blocks), 1, [&](int64_t first, int64_t last) {
    std::vector<int64_t> ids;
    std::vector<float> values;
    for (int64_t b = first; b < last; ++b) {
      const auto [t, begin, end] = blocks[b];
      const kernels::RowGroups& groups = gradients_[t].groups();
      const kernels::RowSources& sources = gradients_[t].sources();
      const bool accumulates = tables_[t].update.use_gradient_accumulation;
      const int64_t most = accumulates ? rows_at_once(tables_.dims()[t]) : 1;
      RowKeys keys = keys_of(t);
      for (int64_t g = begin; g < end; g += most) {
        const int64_t stop = std::min(g + most, end);
        ids.clear();
        if (accumulates) {
          values.resize(most * tables_.dims()[t]);
          for (int64_t i = g; i < stop; ++i) ids.push_back(groups.id(i));
          kernels::sum_row_groups(groups, g, stop, sources, tables_.dims()[t], values.data(),
                                  tables_.shard(t).memory());
        } else {
          const int64_t entries = groups.begin(g + 1) - groups.begin(g);
          ids.assign(entries, groups.id(g));
          values.resize(entries * tables_.dims()[t]);
          kernels::spread_row_groups(groups, groups.begin(g), groups.begin(g + 1), sources,
                                     tables_.dims()[t], values.data());
        }
        update_shard(t, ids, values.data(), update.step(t), keys);
      }
    }
  });
}

// Multiplies the gradients by the factor of clipping by norm, and updates the rows.
void RowUpdater::update_shard(size_t table, std::span<const int64_t> ids, float* gradients,
                              const Step& step, RowKeys& keys) {
  const float scale = scales_.empty() ? 1.0F : scales_[table];
  if (scale != 1.0F) {  // also true for NaN
    const int64_t n = std::ssize(ids) * tables_.dims()[table];
    for (int64_t i = 0; i < n; ++i) gradients[i] *= scale;
  }
  tables_.shard(table).update(tables_[table].update, ids, gradients, step, keys);
}

void RowUpdater::update_rows(Communicator& communicator, const PendingUpdate& update) {
  const profile::Scope tables_scope(profile::Phase::kUpdate, "tables");
  const profile::Scope scope(profile::Phase::kUpdate, "update rows");
  clip_by_norm(communicator);
  update_directly(update, communicator);
  for (size_t t = 0; t < tables_.size(); ++t) {
    if (tables_.is_updated(t) && !applies_directly(t, communicator)) {
      update_share(t, communicator, update.step(t));
    }
  }
  if (tables_.has_keyed()) {
    // Rows are evicted after all of them have been updated.
    communicator.local_barrier(label_, [&] { tables_.finish_update(); });
  }
  // The next lookup or update waits for the arrivals, that is, until all rows are written.
  communicator.arrive();
}

std::vector<RowGradientList::Table> RowUpdater::lists_of(size_t table) const {
  std::vector<RowGradientList::Table> out;
  for (const RowGradientList& list : sums_.of(updates_done_)) {
    out.push_back(list.table(table, tables_.dims()));
  }
  return out;
}

// Returns the rows [first, second) whose sums this replica adds. The shares of the replicas are
// divided by the ids of one replica's batch: the number of replicas that looked up a row varies,
// but not the cost of its update.
std::pair<int64_t, int64_t> RowUpdater::share_of_rows(size_t table,
                                                      const Communicator& communicator) const {
  const Placement& placement = communicator.placement();
  const int64_t me = communicator.rank() - placement.first_local();
  const int64_t local = placement.local();
  const auto sample = sums_.of(updates_done_)[placement.first_local()].ids(table);
  const auto boundary = [&](int64_t share) {
    if (share == 0) return int64_t{0};
    if (share == local) return std::numeric_limits<int64_t>::max();
    return sample.empty() ? tables_.row_limit(table) * share / local
                          : sample[std::ssize(sample) * share / local];
  };
  return {boundary(me), boundary(me + 1)};
}

// Updates this replica's share of the rows of one table.
void RowUpdater::update_share(size_t t, const Communicator& communicator, const Step& step) {
  const RowUpdate& row_update = tables_[t].update;
  const std::vector<RowGradientList::Table> lists = lists_of(t);
  RowKeys keys = keys_of(t);
  if (!row_update.lazy) {
    const Placement& placement = communicator.placement();
    const int64_t me = communicator.rank() - placement.first_local();
    const int64_t local = placement.local();
    const LocalRows& here = tables_.shard(t).rows();
    const int64_t count = tables_.keyed(t) == nullptr ? here.count() : tables_.row_limit(t);
    const std::pair positions = {count * me / local, count * (me + 1) / local};
    if (positions.first == positions.second) return;
    KWayMerge merge(lists, here.row_at(positions.first), here.row_at(positions.second - 1) + 1,
                    tables_.shard(t), row_update.use_gradient_accumulation);
    update_all_rows(t, merge, positions, step, keys);
    return;
  }
  const auto [first, end] = share_of_rows(t, communicator);
  KWayMerge merge(lists, first, end, tables_.shard(t), row_update.use_gradient_accumulation);
  const int64_t most = rows_at_once(tables_.dims()[t]);
  std::array<int64_t, kMostAtOnce> ids;
  std::vector<float> rows(most * tables_.dims()[t]);
  while (const int64_t n = merge.next(most, ids.data(), rows.data())) {
    update_shard(t, {ids.data(), static_cast<size_t>(n)}, rows.data(), step, keys);
  }
}

// Updates every row at these positions, with gradient zero if there is no sum.
void RowUpdater::update_all_rows(size_t table, KWayMerge& merge,
                                 std::pair<int64_t, int64_t> positions, const Step& step,
                                 RowKeys& keys) {
  std::vector<float> row(tables_.dims()[table]);
  for (int64_t at = positions.first; at < positions.second; ++at) {
    int64_t id = tables_.shard(table).rows().row_at(at);
    if (tables_.keyed(table) != nullptr && !tables_.keyed(table)->is_row(id)) continue;
    if (merge.next_id() != id) {
      std::ranges::fill(row, 0.0F);
      update_shard(table, {&id, 1}, row.data(), step, keys);
    }
    while (merge.next_id() == id) {
      merge.next(1, &id, row.data());
      update_shard(table, {&id, 1}, row.data(), step, keys);
    }
  }
}

}  // namespace keel::distribute
