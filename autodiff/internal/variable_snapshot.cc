#include <keel/autodiff/internal/variable_snapshot.h>

#include <utility>

#include <keel/autodiff/internal/thread_state.h>
#include <keel/autodiff/tape.h>

namespace keel {
void VariableSnapshot::add(const Variable& variable) {
  if (variable.is_virtual() || copies_.contains(variable.id())) return;
  const NoGradient pause;
  Variable copy(variable.read(), {.name = variable.name(), .trainable = variable.trainable()});
  copy.set_path(variable.path());
  copies_.emplace(variable.id(), std::move(copy));
}

bool VariableSnapshot::any_in_use() { return thread_state.snapshot != nullptr; }

const Variable* VariableSnapshot::current(uint64_t id) {
  if (thread_state.snapshot == nullptr) return nullptr;
  const auto at = thread_state.snapshot->copies_.find(id);
  return at == thread_state.snapshot->copies_.end() ? nullptr : &at->second;
}

VariableSnapshot::Scope::Scope(const VariableSnapshot& copies)
    : previous_(std::exchange(thread_state.snapshot, &copies)) {}
VariableSnapshot::Scope::~Scope() { thread_state.snapshot = previous_; }

CombinedReads::CombinedReads(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    if (variable.averages_replicas()) values_.try_emplace(variable.id(), variable.read());
  }
}

const Tensor* CombinedReads::current(uint64_t id) {
  if (thread_state.combined_reads == nullptr) return nullptr;
  const auto at = thread_state.combined_reads->values_.find(id);
  return at == thread_state.combined_reads->values_.end() ? nullptr : &at->second;
}

CombinedReads::Scope::Scope(const CombinedReads& reads)
    : previous_(std::exchange(thread_state.combined_reads, &reads)) {}
CombinedReads::Scope::~Scope() { thread_state.combined_reads = previous_; }

}  // namespace keel
