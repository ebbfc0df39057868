#include <keel/distribute/embedding/internal/remote_rows.h>

#include <algorithm>

#include <keel/distribute/internal/placement.h>

namespace keel::distribute {
namespace {

template <class Part>
std::vector<Bytes> as_messages(const std::vector<Part>& parts) {
  std::vector<Bytes> out;
  for (const Part& part : parts) out.push_back(as_bytes_of<typename Part::value_type>(part));
  return out;
}

// Returns the rank that answers requests for rows of a host. Ranks of one process ask different
// ranks, which balances the work.
int answering_rank(const Placement& placement, int host, int hosts, int asking) {
  const int process = placement.process_of(host * (placement.replicas() / hosts));
  const int there = placement.first[process + 1] - placement.first[process];
  return placement.first[process] + asking % there;
}

}  // namespace

// Sorts the ids of each table into requests_ by the rank that answers them. Returns that rank by
// table and distinct id.
std::vector<std::vector<int>> RemoteRows::group_by_rank(const Communicator& communicator,
                                                        const std::vector<TableShard>& tables,
                                                        std::span<const std::vector<int64_t>> ids) {
  const size_t count = tables.size();
  for (std::vector<int64_t>& request : requests_) request.clear();
  std::vector<std::vector<int>> ranks(count);  // the answering rank, by distinct id
  for (size_t t = 0; t < count; ++t) {
    kernels::group_ids(ids[t], groups_[t]);
    const Partition& partition = tables[t].rows().partition();
    for (const int64_t id : groups_[t].distinct) {
      const int rank = answering_rank(communicator.placement(), partition.owner(id),
                                      partition.hosts(), communicator.rank());
      ranks[t].push_back(rank);
      std::vector<int64_t>& request = requests_[rank];
      if (request.empty()) request.assign(count, 0);
      ++request[t];
      request.push_back(id);
    }
  }
  return ranks;
}

void RemoteRows::fetch(Communicator& communicator, const std::vector<TableShard>& tables,
                       std::span<const std::vector<int64_t>> ids, const std::string& label) {
  const size_t count = tables.size();
  const int size = communicator.size();
  groups_.resize(count);
  number_.resize(count);
  rows_.resize(count);
  requests_.resize(size);
  replies_.resize(size);
  fetched_.resize(size);
  const std::vector<std::vector<int>> ranks = group_by_rank(communicator, tables, ids);
  const std::vector<Bytes> asked = communicator.all_to_all(as_messages(requests_), label);
  for (int r = 0; r < size; ++r) {
    const auto request = as_elements<int64_t>(asked[r]);
    replies_[r].clear();
    if (request.empty()) continue;
    auto wanted = request.subspan(count);
    for (size_t t = 0; t < count; ++t) {
      const size_t at = replies_[r].size();
      replies_[r].resize(at + request[t] * tables[t].dim());
      tables[t].read_rows(wanted.first(request[t]), replies_[r].data() + at);
      wanted = wanted.subspan(request[t]);
    }
  }
  const std::vector<Bytes> answers =
      communicator.all_to_all(as_messages(replies_), "rows looked up");
  std::vector<const float*> next(size);
  for (int r = 0; r < size; ++r) {
    const auto rows = as_elements<float>(answers[r]);
    fetched_[r].assign(rows.begin(), rows.end());  // the next collective may invalidate `answers`
    next[r] = fetched_[r].data();
  }
  for (size_t t = 0; t < count; ++t) {
    rows_[t].clear();
    for (const int rank : ranks[t]) {
      rows_[t].push_back(next[rank]);
      next[rank] += tables[t].dim();
    }
    number_[t].resize(ids[t].size());
    const kernels::GroupedIds& groups = groups_[t];
    for (size_t g = 0; g < groups.distinct.size(); ++g) {
      for (int64_t i = groups.starts[g]; i < groups.starts[g + 1]; ++i) {
        number_[t][groups.positions[i]] = static_cast<int64_t>(g);
      }
    }
  }
}

}  // namespace keel::distribute
