#include <keel/autodiff/internal/variable_snapshot.h>

#include <utility>

#include <keel/autodiff/tape.h>

namespace keel {
namespace {

thread_local const VariableSnapshot* copies_of_scope = nullptr;
thread_local const CombinedReads* reads_of_scope = nullptr;

}  // namespace

void VariableSnapshot::add(const Variable& variable) {
  if (variable.is_virtual() || copies_.contains(variable.id())) return;
  const NoGradient pause;
  Variable copy(variable.read(), {.name = variable.name(), .trainable = variable.trainable()});
  copy.set_path(variable.path());
  copies_.emplace(variable.id(), std::move(copy));
}

bool VariableSnapshot::any_in_use() { return copies_of_scope != nullptr; }

const Variable* VariableSnapshot::current(uint64_t id) {
  if (copies_of_scope == nullptr) return nullptr;
  const auto at = copies_of_scope->copies_.find(id);
  return at == copies_of_scope->copies_.end() ? nullptr : &at->second;
}

VariableSnapshot::Scope::Scope(const VariableSnapshot& copies)
    : previous_(std::exchange(copies_of_scope, &copies)) {}
VariableSnapshot::Scope::~Scope() { copies_of_scope = previous_; }

CombinedReads::CombinedReads(const std::vector<Variable>& variables) {
  for (const Variable& variable : variables) {
    if (variable.averages_replicas()) values_.try_emplace(variable.id(), variable.read());
  }
}

const Tensor* CombinedReads::current(uint64_t id) {
  if (reads_of_scope == nullptr) return nullptr;
  const auto at = reads_of_scope->values_.find(id);
  return at == reads_of_scope->values_.end() ? nullptr : &at->second;
}

CombinedReads::Scope::Scope(const CombinedReads& reads)
    : previous_(std::exchange(reads_of_scope, &reads)) {}
CombinedReads::Scope::~Scope() { reads_of_scope = previous_; }

}  // namespace keel
