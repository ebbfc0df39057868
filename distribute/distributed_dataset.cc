#include <keel/distribute/distributed_dataset.h>

namespace keel::distribute {

int64_t InputContext::get_per_replica_batch_size(int64_t global_batch_size) const {
  if (global_batch_size % num_replicas_in_sync != 0) {
    throw ValueError("InputContext: the global batch size must be a multiple of ",
                     num_replicas_in_sync, " replicas, received ", global_batch_size);
  }
  return global_batch_size / num_replicas_in_sync;
}

DistributedDataset::DistributedDataset(std::function<Next()> make, int64_t cardinality)
    : make_(std::move(make)), cardinality_(cardinality) {}

}  // namespace keel::distribute
