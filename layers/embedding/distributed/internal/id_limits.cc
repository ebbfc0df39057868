#include <keel/layers/embedding/distributed/internal/id_limits.h>

#include <algorithm>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include <keel/distribute/dynamic/internal/key_functions.h>
#include <keel/framework/base/internal/hash_map.h>

namespace keel {
namespace {

// Returns the rows without the positions whose ids `keep` rejects.
template <class Id, class Keep>
IdRows filtered(const IdRows& rows, const Keep& keep) {
  const auto ids = rows.ids.data<Id>();
  const auto splits = rows.row_splits.data<int64_t>();
  const auto weights = rows.weights ? rows.weights.data<float>() : std::span<const float>();
  std::vector<Id> kept;
  std::vector<int64_t> new_splits = {0};
  std::vector<float> kept_weights;
  for (size_t r = 0; r + 1 < splits.size(); ++r) {
    for (int64_t p = splits[r]; p < splits[r + 1]; ++p) {
      if (!keep(ids[p])) continue;
      kept.push_back(ids[p]);
      if (!weights.empty()) kept_weights.push_back(weights[p]);
    }
    new_splits.push_back(std::ssize(kept));
  }
  IdRows out = {.ids = Tensor::from(kept, {std::ssize(kept)}),
                .row_splits = Tensor::from(new_splits, {std::ssize(new_splits)})};
  if (rows.weights) out.weights = Tensor::from(kept_weights, {std::ssize(kept_weights)});
  return out;
}

// A set of ids.
template <class Id>
class IdSet {
 public:
  // Returns true if the id is new.
  bool insert(const Id& id) { return ids_.insert(id).second; }
  bool contains(const Id& id) const { return ids_.contains(id); }

 private:
  std::unordered_set<Id> ids_;
};
template <>
class IdSet<int64_t> : public HashSet<int64_t> {};

}  // namespace

Config encode(IdLimitPolicy policy) {
  switch (policy) {
    case IdLimitPolicy::kUnlimited:
      return "unlimited";
    case IdLimitPolicy::kError:
      return "error";
    case IdLimitPolicy::kDrop:
      break;
  }
  return "drop";
}

void decode(const Config& config, IdLimitPolicy& policy) {
  for (const IdLimitPolicy p :
       {IdLimitPolicy::kUnlimited, IdLimitPolicy::kError, IdLimitPolicy::kDrop}) {
    if (encode(p) == config) {
      policy = p;
      return;
    }
  }
  throw ValueError("id_limit_policy: must be unlimited, error or drop, received ", to_json(config));
}

// The ids and distinct ids of one batch, by partition.
struct IdLimiter::Demand {
  std::vector<int64_t> ids, unique_ids;
};

IdLimiter::IdLimiter(std::string table, const IdLimits& limits, IdLimitPolicy policy,
                     int partitions, bool grows, std::string caller, bool dynamic)
    : table_(std::move(table)),
      policy_(policy),
      partitions_(partitions),
      grows_(grows),
      caller_(std::move(caller)),
      dynamic_(dynamic),
      limits_(limits) {
  check(limits);
}

void IdLimiter::check(const IdLimits& limits) const {
  if (policy_ == IdLimitPolicy::kUnlimited && !grows_) return;
  if (limits.max_ids_per_partition < 1 || limits.max_unique_ids_per_partition < 1) {
    throw ValueError(caller_, ": max_ids_per_partition and max_unique_ids_per_partition of table '",
                     table_, "' must be positive, received ", limits.max_ids_per_partition, " and ",
                     limits.max_unique_ids_per_partition);
  }
}

template <class Id>
size_t IdLimiter::partition_of(const Id& id) const {
  if constexpr (std::is_same_v<Id, int64_t>) {
    if (!dynamic_) return static_cast<size_t>(id % partitions_);
  }
  const int64_t shard = distribute::key_shard(distribute::key_hash(id));
  return static_cast<size_t>(shard * partitions_ / distribute::kKeyShards);
}

template <class Id>
IdLimiter::Demand IdLimiter::demand_of(std::span<IdRows* const> features) const {
  Demand out = {.ids = std::vector<int64_t>(partitions_),
                .unique_ids = std::vector<int64_t>(partitions_)};
  IdSet<Id> seen;
  for (const IdRows* rows : features) {
    for (const Id& id : rows->ids.template data<Id>()) {
      const size_t partition = partition_of(id);
      ++out.ids[partition];
      if (seen.insert(id)) ++out.unique_ids[partition];
    }
  }
  return out;
}

// Keeps ids in feature order until their partition is full. An id that was kept before only counts
// towards max_ids_per_partition. Returns the number of dropped ids.
template <class Id>
int64_t IdLimiter::drop(std::span<IdRows* const> features, const IdLimits& limits) const {
  std::vector<int64_t> ids(partitions_), unique_ids(partitions_);
  IdSet<Id> admitted;
  int64_t dropped = 0;
  const auto keep = [&](const Id& id) {
    const size_t p = partition_of(id);
    const bool known = admitted.contains(id);
    if (ids[p] == limits.max_ids_per_partition ||
        (!known && unique_ids[p] == limits.max_unique_ids_per_partition)) {
      ++dropped;
      return false;
    }
    ++ids[p];
    if (!known) {
      ++unique_ids[p];
      admitted.insert(id);
    }
    return true;
  };
  for (IdRows* rows : features) *rows = filtered<Id>(*rows, keep);
  return dropped;
}

void IdLimiter::refuse(const Demand& demand, const IdLimits& limits) const {
  const auto most = std::ranges::max_element(demand.ids);
  const auto most_unique = std::ranges::max_element(demand.unique_ids);
  const bool of_all = *most > limits.max_ids_per_partition;
  const auto at = of_all ? most - demand.ids.begin() : most_unique - demand.unique_ids.begin();
  throw ValueError(caller_, ": table '", table_,
                   "': ", of_all ? "max_ids_per_partition" : "max_unique_ids_per_partition", " is ",
                   of_all ? limits.max_ids_per_partition : limits.max_unique_ids_per_partition,
                   ", but a batch has ", of_all ? *most : *most_unique, " for partition ", at,
                   "; raise the limit or allow ids to be dropped (IdLimitPolicy::kDrop)");
}

void IdLimiter::apply(std::span<IdRows* const> features) {
  if ((policy_ == IdLimitPolicy::kUnlimited && !grows_) || features.empty()) return;
  if (features[0]->ids.dtype() == DType::kString) {
    apply_to<std::string>(features);
  } else {
    apply_to<int64_t>(features);
  }
}

template <class Id>
void IdLimiter::apply_to(std::span<IdRows* const> features) {
  const Demand demand = demand_of<Id>(features);
  const int64_t most = *std::ranges::max_element(demand.ids);
  const int64_t most_unique = *std::ranges::max_element(demand.unique_ids);
  const IdLimits limits = this->limits();
  const bool exceeds = !grows_ && (most > limits.max_ids_per_partition ||
                                   most_unique > limits.max_unique_ids_per_partition);
  if (exceeds && policy_ == IdLimitPolicy::kError) refuse(demand, limits);
  const int64_t dropped = exceeds ? drop<Id>(features, limits) : 0;
  const std::lock_guard lock(mutex_);
  if (grows_) {
    limits_.max_ids_per_partition = std::max(limits_.max_ids_per_partition, most);
    limits_.max_unique_ids_per_partition =
        std::max(limits_.max_unique_ids_per_partition, most_unique);
  }
  IdStatistics& s = statistics_;
  s.max_ids_per_partition = std::max(s.max_ids_per_partition, most);
  s.max_unique_ids_per_partition = std::max(s.max_unique_ids_per_partition, most_unique);
  s.dropped_ids += dropped;
}

IdLimits IdLimiter::limits() const {
  const std::lock_guard lock(mutex_);
  return limits_;
}

void IdLimiter::set_limits(const IdLimits& limits) {
  check(limits);
  const std::lock_guard lock(mutex_);
  limits_ = limits;
}

IdStatistics IdLimiter::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

}  // namespace keel
