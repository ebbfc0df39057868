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

// The limits of one table.
struct IdLimits {
  int64_t max_ids_per_partition = 256;
  int64_t max_unique_ids_per_partition = 256;
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
