// Limits on the ids that one replica's batch sends to one partition (sparse core), and the policy
// for ids beyond them. Hardware has buffers of these sizes. This engine does not need them, so
// limits only apply on request, and every dropped id is counted.
#pragma once

#include <mutex>
#include <span>
#include <string>

#include <keel/framework/config/config.h>
#include <keel/layers/embedding/tables/id_rows.h>

namespace keel {

// The policy for ids beyond a limit.
enum class IdLimitPolicy {
  kUnlimited,  // ignores the limits and counts nothing
  kError,      // throws ValueError before anything is looked up
  kDrop,       // drops the ids and counts them
};
Config encode(IdLimitPolicy policy);                       // "unlimited", "error", "drop"
void decode(const Config& config, IdLimitPolicy& policy);  // throws ValueError for another value

// The limits of one table.
struct IdLimits {
  int64_t max_ids_per_partition = 256;
  int64_t max_unique_ids_per_partition = 256;
};

// Statistics of the lookups of one table.
struct IdStatistics {
  // The largest demand of one batch, including dropped ids. Limits of this size would have dropped
  // nothing.
  int64_t max_ids_per_partition = 0;
  int64_t max_unique_ids_per_partition = 0;
  int64_t dropped_ids = 0;
};

// Applies the limits of one table. Thread-safe: replicas may call apply() concurrently.
class IdLimiter {
 public:
  // Id i belongs to partition i mod partitions. Throws ValueError unless limits that apply are
  // positive.
  IdLimiter(std::string table, const IdLimits& limits, IdLimitPolicy policy, int partitions);

  // Applies the limits to one replica's batch: all features of the table, in feature order. kDrop
  // keeps the first ids of a partition, and the first distinct ids.
  // Throws ValueError, naming the table, under kError.
  void apply(std::span<IdRows* const> features);
  // Returns the statistics of all batches so far.
  IdStatistics statistics() const;

 private:
  struct Demand;
  Demand demand_of(std::span<IdRows* const> features) const;
  int64_t drop(std::span<IdRows* const> features) const;

  const std::string table_;
  const IdLimits limits_;
  const IdLimitPolicy policy_;
  const int partitions_;
  mutable std::mutex mutex_;  // guards statistics_
  IdStatistics statistics_;
};

}  // namespace keel
