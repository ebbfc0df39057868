// Limits on the ids that one replica's batch sends to one partition (sparse core).
#pragma once

#include <mutex>
#include <span>
#include <string>

#include <keel/framework/config/config.h>
#include <keel/layers/embedding/distributed/distributed_config.h>
#include <keel/layers/embedding/tables/internal/id_rows.h>

namespace keel {

// Encode and decode a policy as "unlimited", "error" or "drop". decode() throws ValueError for
// another value.
Config encode(IdLimitPolicy policy);
void decode(const Config& config, IdLimitPolicy& policy);

// Applies the limits of one table. Thread-safe: replicas may call apply() concurrently.
class IdLimiter {
 public:
  // Id i belongs to partition i mod partitions or, if `dynamic`, to that of its key shard. If
  // `grows`, limits grow to what a batch needs, and
  // the policy has nothing to do. Throws ValueError, naming `caller`, unless limits that apply are
  // positive.
  IdLimiter(std::string table, const IdLimits& limits, IdLimitPolicy policy, int partitions,
            bool grows = false, std::string caller = "DistributedEmbedding", bool dynamic = false);

  // Applies the limits to one replica's batch: all features of the table, in feature order. kDrop
  // keeps the first ids of a partition, and the first distinct ids.
  // Throws ValueError, naming the table, under kError.
  void apply(std::span<IdRows* const> features);
  // Returns the statistics of all batches so far.
  IdStatistics statistics() const;
  // Return the current limits, and replace them.
  IdLimits limits() const;
  void set_limits(const IdLimits& limits);

 private:
  struct Demand;
  template <class Id>
  size_t partition_of(const Id& id) const;
  template <class Id>
  Demand demand_of(std::span<IdRows* const> features) const;
  template <class Id>
  int64_t drop(std::span<IdRows* const> features, const IdLimits& limits) const;
  template <class Id>
  void apply_to(std::span<IdRows* const> features);
  void check(const IdLimits& limits) const;
  [[noreturn]] void refuse(const Demand& demand, const IdLimits& limits) const;

  const std::string table_;
  const IdLimitPolicy policy_;
  const int partitions_;
  const bool grows_;
  const std::string caller_;
  const bool dynamic_;
  mutable std::mutex mutex_;  // guards the members below
  IdLimits limits_;
  IdStatistics statistics_;
};

}  // namespace keel
