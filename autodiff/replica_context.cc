#include <keel/autodiff/replica_context.h>

#include <keel/autodiff/internal/thread_state.h>

namespace keel {

const ReplicaContext* current_replica_context() { return thread_state.replica; }

ReplicaScope::ReplicaScope(const ReplicaContext& context)
    : context_(context), previous_(thread_state.replica) {
  thread_state.replica = &context_;
}

ReplicaScope::~ReplicaScope() { thread_state.replica = previous_; }

}  // namespace keel
