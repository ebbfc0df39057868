// Limits on the ids that one replica's batch sends to one partition (sparse core), and what happens
// beyond them. Hardware has buffers of such sizes; the engine here does not need them, so limits
// hold only if asked for, and nothing is ever left out without being counted.
#pragma once

#include <mutex>
#include <span>
#include <string>

#include <keel/framework/config/config.h>
#include <keel/layers/embedding/tables/id_rows.h>

namespace keel {

enum class IdLimitPolicy {
  kUnlimited,  // limits are not looked at, ids are not counted
  kError,      // ids beyond a limit are a ValueError, before anything is looked up
  kDrop,       // they are left out, as if they had not been there, and counted
};
Config encode(IdLimitPolicy policy);                       // "unlimited", "error", "drop"
void decode(const Config& config, IdLimitPolicy& policy);  // ValueError for another word

struct IdLimits {
  int64_t max_ids_per_partition = 256;
  int64_t max_unique_ids_per_partition = 256;
};

// What the lookups of one table have met so far.
struct IdStatistics {
  // The most that one batch asked for, dropped ids included: limits that would have done.
  int64_t max_ids_per_partition = 0;
  int64_t max_unique_ids_per_partition = 0;
  int64_t dropped_ids = 0;
};

// The limits of one table. Any number of replicas may apply them at once.
class IdLimiter {
 public:
  // Id i belongs to partition i mod partitions. ValueError unless limits that hold are positive.
  IdLimiter(std::string table, const IdLimits& limits, IdLimitPolicy policy, int partitions);

  // `features` are one replica's batch: all features of the table, in feature order. Where ids are
  // dropped, the first ones stay; of distinct ids, those that come first.
  // ValueError, naming the table, under kError.
  void apply(std::span<IdRows* const> features);
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
