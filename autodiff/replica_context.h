// Which replica the current thread runs, if any. Set by distribute/strategy.h; read by variables.
#pragma once

#include <cstdint>

namespace keel {

struct ReplicaContext {
  int replica = 0;         // among all replicas of the strategy
  int replicas = 1;        // of the strategy, over all processes
  int local_replica = 0;   // among those of this process
  int local_replicas = 1;  // run by this process
  uint64_t run = 1;        // number of the strategy's run, from 1
};

// The context of this thread; null in cross-replica code, such as the main program.
const ReplicaContext* current_replica_context();

// While alive, this thread runs the given replica.
class ReplicaScope {
 public:
  explicit ReplicaScope(const ReplicaContext& context);
  ~ReplicaScope();
  ReplicaScope(const ReplicaScope&) = delete;
  ReplicaScope& operator=(const ReplicaScope&) = delete;

 private:
  const ReplicaContext context_;
  const ReplicaContext* const previous_;
};

}  // namespace keel
