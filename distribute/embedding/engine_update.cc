#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include <keel/distribute/embedding/engine_internal.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/base/profile.h>
#include <keel/framework/kernels/processor.h>

namespace keel::distribute {
namespace {

constexpr int64_t kRowsPerBlock = 1024;  // unit of work of a thread

// The number of rows that are summed and then updated together, small enough for their sums to stay
// in the L1 cache. Summing prefetches the rows that are updated next. On processors that prefetch
// into the L2 cache the number is smaller, because the cache takes all prefetches of a turn at
// once.
constexpr int64_t kMostAtOnce = 64;
int64_t rows_at_once(int64_t dim) {
  return std::clamp<int64_t>((kernels::kAsksIntoL2 ? 512 : 4096) / dim, 4, kMostAtOnce);
}

}  // namespace

// Returns the rounding keys of the current update.
RowKeys EmbeddingEngine::State::keys_of(const Scratch& s, size_t table) const {
  const UpdateCount& update = s.updates[table];
  const uint64_t key =
      kernels::mixed_key(table_keys[table], static_cast<uint64_t>(update.iteration));
  return RowKeys(kernels::mixed_key(key, static_cast<uint64_t>(update.since)));
}

void EmbeddingEngine::State::group(const std::vector<FeatureBatch>& features,
                                   std::vector<kernels::RowGroups>& groups) const {
  const profile::Scope scope(profile::Phase::kUpdate, "group ids");
  groups.resize(tables().size());
  parallel_for(std::ssize(tables()), 1, [&](int64_t first, int64_t end) {
    for (int64_t t = first; t < end; ++t) {
      if (tables()[t].update.rule != nullptr) group(features, t, groups[t]);
    }
  });
}

void EmbeddingEngine::State::group(const std::vector<FeatureBatch>& features, size_t table,
                                   kernels::RowGroups& groups) const {
  std::vector<kernels::Bags> bags;
  for (const int f : features_of(table)) bags.push_back(bags_of(features[f]));
  group_rows(bags, tables()[table].rows, groups);
}

void EmbeddingEngine::State::fill_gradients(const Pending& p, Scratch& s) const {
  // There are no groups if no update was expected or if a failed attempt has used them.
  std::vector<kernels::RowGroups> groups = std::exchange(p.ticket->groups, {});
  if (groups.empty()) group(p.ticket->features, groups);
  const profile::Scope scope(profile::Phase::kUpdate, "fill gradients");
  s.gradients.resize(tables().size());
  parallel_for(std::ssize(tables()), 1, [&](int64_t first, int64_t end) {
    std::vector<PooledGradient> features;
    for (int64_t t = first; t < end; ++t) {
      if (tables()[t].update.rule == nullptr) continue;
      features.clear();
      for (const int f : features_of(t)) {
        features.push_back(
            {.bags = bags_of(p.ticket->features[f]),
             .gradient = p.gradients[f] ? p.gradients[f].data<float>().data() : nullptr});
      }
      s.gradients[t].exchange_groups(groups[t]);
      s.gradients[t].fill(features, tables()[t].combiner, dims[t]);
    }
  });
  s.keep_memory(groups);
}

// If no other replica contributes to a row, its sum can be applied immediately and need not be
// stored.
bool EmbeddingEngine::State::steps_as_it_sums(size_t table,
                                              const Communicator& communicator) const {
  return communicator.size() == 1 && tables()[table].update.lazy;
}

void EmbeddingEngine::State::step_own_sums(const Pending& p, const Scratch& s,
                                           const Communicator& communicator) {
  const profile::Scope scope(profile::Phase::kUpdate, "update rows");
  struct Block {
    size_t table;
    int64_t first, end;
  };
  std::vector<Block> blocks;
  for (size_t t = 0; t < tables().size(); ++t) {
    if (tables()[t].update.rule == nullptr || !steps_as_it_sums(t, communicator)) continue;
    const int64_t groups = s.gradients[t].groups().size();
    for (int64_t g = 0; g < groups; g += kRowsPerBlock) {
      blocks.push_back({t, g, std::min(g + kRowsPerBlock, groups)});
    }
  }
  parallel_for(std::ssize(blocks), 1, [&](int64_t first, int64_t last) {
    std::vector<int64_t> ids;
    std::vector<float> values;
    for (int64_t b = first; b < last; ++b) {
      const auto [t, begin, end] = blocks[b];
      const kernels::RowGroups& groups = s.gradients[t].groups();
      const kernels::RowSources& sources = s.gradients[t].sources();
      const bool accumulates = tables()[t].update.use_gradient_accumulation;
      const int64_t most = accumulates ? rows_at_once(dims[t]) : 1;
      RowKeys keys = keys_of(s, t);
      for (int64_t g = begin; g < end; g += most) {
        const int64_t stop = std::min(g + most, end);
        ids.clear();
        if (accumulates) {
          values.resize(most * dims[t]);
          for (int64_t i = g; i < stop; ++i) ids.push_back(groups.id(i));
          kernels::sum_row_groups(groups, g, stop, sources, dims[t], values.data(),
                                  held[t].memory());
        } else {
          const int64_t entries = groups.begin(g + 1) - groups.begin(g);
          ids.assign(entries, groups.id(g));
          values.resize(entries * dims[t]);
          kernels::spread_row_groups(groups, groups.begin(g), groups.begin(g + 1), sources, dims[t],
                                     values.data());
        }
        held[t].step(tables()[t].update, ids, values.data(), p.step(t), keys);
      }
    }
  });
}

// Stores this replica's sums by the process that holds the rows.
void EmbeddingEngine::State::list_sums(Communicator& communicator, Scratch& s) {
  const profile::Scope scope(profile::Phase::kUpdate, "sum rows");
  const Placement& placement = communicator.placement();
  s.outgoing.resize(placement.processes());
  std::vector<RowGradientList>& lists = sums_of(s.updates_done + 1);
  const auto list_of = [&](int process) -> RowGradientList& {
    return process == placement.process ? lists[communicator.rank()] : s.outgoing[process];
  };
  for (RowGradientList& list : s.outgoing) list.clear();
  lists[communicator.rank()].restart(sums_of(s.updates_done)[communicator.rank()]);
  const int cores = configuration.num_tensor_cores / configuration.num_hosts;
  for (size_t t = 0; t < tables().size(); ++t) {
    const RowUpdate& update = tables()[t].update;
    if (update.rule != nullptr && !steps_as_it_sums(t, communicator)) {
      const kernels::RowGroups& groups = s.gradients[t].groups();
      const Partition& partition = held[t].rows().partition();
      // Split the groups into runs of rows that one process holds.
      for (int64_t first = 0, end = 0; first < groups.size(); first = end) {
        const auto process_at = [&](int64_t g) {
          return placement.process_of(partition.owner(groups.id(g)) * cores);
        };
        const int process = placement.processes() == 1 ? 0 : process_at(first);
        end = placement.processes() == 1 ? groups.size() : first + 1;
        while (end < groups.size() && process_at(end) == process) ++end;
        list_of(process).append(groups, first, end, s.gradients[t].sources(), dims[t],
                                !update.use_gradient_accumulation);
      }
    }
    for (int q = 0; q < placement.processes(); ++q) list_of(q).end_table();
  }
}

// The sums for a process are sent to one of its replicas, which stores them for all. A message has
// the ids as 64-bit words, then the values.
int64_t EmbeddingEngine::State::post_sums(Communicator& communicator, Scratch& s) const {
  const Placement& placement = communicator.placement();
  std::vector<std::vector<std::byte>> messages(placement.processes());
  std::vector<Bytes> send(communicator.size());
  for (int q = 0; q < placement.processes(); ++q) {
    if (q == placement.process) continue;
    const int there = placement.first[q + 1] - placement.first[q];
    const int to = placement.first[q] + communicator.rank() % there;
    const Bytes ids = as_bytes_of<int64_t>(s.outgoing[q].counts_and_ids(tables().size()));
    const Bytes values = as_bytes_of<float>(s.outgoing[q].values());
    std::vector<std::byte>& message = messages[q];
    message.reserve(ids.size() + values.size());
    message.insert(message.end(), ids.begin(), ids.end());
    message.insert(message.end(), values.begin(), values.end());
    send[to] = message;
  }
  return communicator.post_to_processes(send, s.label);
}

void EmbeddingEngine::State::collect_sums(Communicator& communicator, int64_t posted,
                                          std::vector<RowGradientList>& lists,
                                          const std::string& call) const {
  const std::vector<Bytes> received = communicator.collect_posted(posted, call);
  for (int r = 0; r < communicator.size(); ++r) {
    if (received[r].empty()) continue;
    const auto words = as_elements<int64_t>(received[r]);
    int64_t ids = static_cast<int64_t>(tables().size());
    for (size_t t = 0; t < tables().size(); ++t) ids += words[t];
    const Bytes values = received[r].subspan(ids * sizeof(int64_t));
    lists[r].assign(words.first(ids), as_elements<float>(values), tables().size());
  }
}

// Updates this replica's share of the rows held here. The shares are divided by the ids of one
// replica's batch: the number of replicas that looked up a row varies, but not the cost of its
// update.
void EmbeddingEngine::State::step_listed(Communicator& communicator, const Pending& p,
                                         const Scratch& s) {
  const profile::Scope scope(profile::Phase::kUpdate, "update rows");
  const Placement& placement = communicator.placement();
  const int64_t me = communicator.rank() - placement.first_local();
  const int64_t local = placement.local();
  const std::vector<RowGradientList>& of_replicas = sums_of(s.updates_done);
  std::vector<RowGradientList::Table> lists(communicator.size());
  std::array<int64_t, kMostAtOnce> ids;
  std::vector<float> rows;
  for (size_t t = 0; t < tables().size(); ++t) {
    const RowUpdate& update = tables()[t].update;
    if (update.rule == nullptr || steps_as_it_sums(t, communicator)) continue;
    for (int r = 0; r < communicator.size(); ++r) lists[r] = of_replicas[r].table(t, dims);
    RowKeys keys = keys_of(s, t);
    if (!update.lazy) {
      const LocalRows& here = held[t].rows();
      const std::pair positions = {here.count() * me / local, here.count() * (me + 1) / local};
      if (positions.first == positions.second) continue;
      KWayMerge merge(lists, here.row_at(positions.first), here.row_at(positions.second - 1) + 1,
                      held[t], update.use_gradient_accumulation);
      step_all(t, merge, positions, p.step(t), keys);
      continue;
    }
    const auto& sample = lists[placement.first_local()].ids;
    const auto boundary = [&](int64_t share) {
      if (share == 0) return int64_t{0};
      if (share == local) return std::numeric_limits<int64_t>::max();
      return sample.empty() ? tables()[t].rows * share / local
                            : sample[std::ssize(sample) * share / local];
    };
    KWayMerge merge(lists, boundary(me), boundary(me + 1), held[t],
                    update.use_gradient_accumulation);
    const int64_t most = rows_at_once(dims[t]);
    rows.resize(most * dims[t]);
    while (const int64_t n = merge.next(most, ids.data(), rows.data())) {
      held[t].step(update, {ids.data(), static_cast<size_t>(n)}, rows.data(), p.step(t), keys);
    }
  }
}

// Updates every row at these positions, with gradient zero if there is no sum.
void EmbeddingEngine::State::step_all(size_t table, KWayMerge& merge,
                                      std::pair<int64_t, int64_t> positions, const Step& step,
                                      RowKeys& keys) {
  std::vector<float> row(dims[table]);
  for (int64_t at = positions.first; at < positions.second; ++at) {
    int64_t id = held[table].rows().row_at(at);
    if (merge.next_id() != id) {
      std::ranges::fill(row, 0.0F);
      held[table].step(tables()[table].update, {&id, 1}, row.data(), step, keys);
    }
    while (merge.next_id() == id) {
      merge.next(1, &id, row.data());
      held[table].step(tables()[table].update, {&id, 1}, row.data(), step, keys);
    }
  }
}

// Sums the gradients of each row over this replica's batch.
void EmbeddingEngine::State::begin_update(Communicator& communicator, Pending& p) {
  const profile::Scope scope(profile::Phase::kUpdate, "tables");
  Scratch& s = scratch[communicator.rank() - first_shard];
  s.stop_pooling_ahead();
  fill_gradients(p, s);
  // Other replicas may still read the sums that this replica listed for the previous update.
  communicator.wait_for_arrivals();
  list_sums(communicator, s);
  if (communicator.placement().processes() > 1) p.posted = post_sums(communicator, s);
  p.has_begun = true;
}

// Updates each row with the sums of all replicas.
void EmbeddingEngine::State::finish_update(Communicator& communicator, Pending& p) {
  const profile::Scope scope(profile::Phase::kUpdate, "tables");
  Scratch& s = scratch[communicator.rank() - first_shard];
  s.stop_pooling_ahead();
  if (communicator.placement().processes() > 1) {
    collect_sums(communicator, p.posted, sums_of(s.updates_done + 1), s.label);
  }
  communicator.local_barrier(s.label);
  // All replicas have arrived, so either all of them count this update or, after a failure, none.
  p.writes = true;
  ++s.updates_done;
  for (size_t t = 0; t < tables().size(); ++t) {
    if (tables()[t].update.rule != nullptr) s.updates[t].advance(p.steps[t].iteration);
  }
  step_own_sums(p, s, communicator);
  step_listed(communicator, p, s);
  // The next lookup or update waits for the arrivals, that is, until all rows are written.
  communicator.arrive();
}

}  // namespace keel::distribute
