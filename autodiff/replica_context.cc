#include <keel/autodiff/replica_context.h>

namespace keel {
namespace {

thread_local const ReplicaContext* current = nullptr;

}  // namespace

const ReplicaContext* current_replica_context() { return current; }

ReplicaScope::ReplicaScope(const ReplicaContext& context) : context_(context), previous_(current) {
  current = &context_;
}

ReplicaScope::~ReplicaScope() { current = previous_; }

}  // namespace keel
