// VariableSnapshot holds copies of variables, so that layers can run on the values of one moment
// while the original variables continue to change. Optimizers do not update the copies
// (RuntimeError).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <keel/autodiff/variable.h>

namespace keel {

// A set of variable copies, each made at the time of add().
class VariableSnapshot {
 public:
  // Copies the current value of `variable` (as Variable::read() returns it), unless the snapshot
  // has a copy of it already. Bytes are copied only when one of the two is assigned, or immediately
  // if the value is a view. Virtual variables hold no value and are skipped.
  void add(const Variable& variable);

  // While a Scope is alive, every access of this thread to a variable that has a copy uses the copy
  // instead. Variable::id() is unchanged. Scopes nest; only the copies of the innermost one apply.
  class Scope {
   public:
    explicit Scope(const VariableSnapshot& copies);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const VariableSnapshot* const previous_;
  };
  static bool any_in_use();  // true if this thread is inside a Scope

 private:
  friend class Variable;
  // Returns the copy in this thread's scope, or null if there is none.
  static const Variable* current(uint64_t id);

  std::unordered_map<uint64_t, Variable> copies_;  // by the id of the original
};

// The mean values of variables that replicas average (VariableAggregation::kMean). A replica that
// predicts reads these means, which are also what model files contain, instead of its own values.
class CombinedReads {
 public:
  // Reads the current means of those `variables` that have a value in each replica. Must be called
  // outside the replicas. The call is collective if the replicas run in several processes.
  explicit CombinedReads(const std::vector<Variable>& variables);

  // While a Scope is alive, reads of this thread return the means. Assignments still change the
  // replica's own value.
  class Scope {
   public:
    explicit Scope(const CombinedReads& reads);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const CombinedReads* const previous_;
  };

 private:
  friend class Variable;
  // Returns the mean in this thread's scope, or null if there is none.
  static const Tensor* current(uint64_t id);

  std::unordered_map<uint64_t, Tensor> values_;  // by the id of the variable
};

}  // namespace keel
