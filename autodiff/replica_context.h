// ReplicaContext identifies the replica that the current thread runs, if any. Strategies
// (distribute/strategy.h) set it, and variables read it.
#pragma once

#include <cstdint>

namespace keel {

// A replica's position among the replicas of its strategy, and the current run.
struct ReplicaContext {
  int replica = 0;         // index among all replicas of the strategy
  int replicas = 1;        // number of replicas of the strategy, over all processes
  int local_replica = 0;   // index among the replicas of this process
  int local_replicas = 1;  // number of replicas of this process
  uint64_t run = 1;        // number of the strategy's run(), counted from 1
};

// Returns the context of this thread, or null in cross-replica code, such as the main program.
const ReplicaContext* current_replica_context();

// While a ReplicaScope is alive, this thread runs the given replica. Scopes nest.
class ReplicaScope {
 public:
  // Makes `context` the context of this thread until the object is destroyed.
  explicit ReplicaScope(const ReplicaContext& context);
  ~ReplicaScope();
  ReplicaScope(const ReplicaScope&) = delete;
  ReplicaScope& operator=(const ReplicaScope&) = delete;

 private:
  const ReplicaContext context_;
  const ReplicaContext* const previous_;
};

}  // namespace keel
