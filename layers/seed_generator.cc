#include <keel/autodiff/replica_context.h>
#include <keel/layers/layer_types.h>

namespace keel {
namespace {

constexpr int kReplicaBits = 46;  // each replica has 2^46 numbers per call

}  // namespace

Variable SeedGenerator::make_state() {
  calls_ = Variable(Tensor::zeros({1}, DType::kInt64),
                    {.name = "seed_generator_state",
                     .trainable = false,
                     .synchronization = VariableSynchronization::kOnRead,
                     .aggregation = VariableAggregation::kOnlyFirstReplica});
  return calls_;
}

RandomNumbers SeedGenerator::next() const {
  const auto call = calls_.read().item<int64_t>();
  calls_.assign(Tensor::full<int64_t>({1}, call + 1));
  const ReplicaContext* const context = current_replica_context();
  const uint64_t replica = context == nullptr ? 0 : static_cast<uint64_t>(context->replica);
  // Each call has its own lane of the stream, and each replica its own range in the lane.
  return {.stream = stream_.at_lane(static_cast<uint64_t>(call)), .first = replica << kReplicaBits};
}

}  // namespace keel
