// VariableSnapshot: variables that stand in for others, so that layers run on values of a moment
// while their own go on to change. Optimizers step no copies (RuntimeError).
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include <keel/autodiff/variable.h>

namespace keel {

class VariableSnapshot {
 public:
  // Makes a copy of the value of now (that of Variable::read), unless there is one. Bytes are
  // copied only once one of the two is assigned, or at once if the value is a view. A virtual
  // variable has nothing to copy.
  void add(const Variable& variable);

  // While alive, whatever this thread does with a variable that has a copy, it does with the copy;
  // ids stay the variable's. Scopes nest: the inner one's copies alone are in use.
  class Scope {
   public:
    explicit Scope(const VariableSnapshot& copies);
    ~Scope();
    Scope(const Scope&) = delete;
    Scope& operator=(const Scope&) = delete;

   private:
    const VariableSnapshot* const previous_;
  };
  static bool any_in_use();  // by this thread

 private:
  friend class Variable;
  // Of this thread's scope; null if there is none.
  static const Variable* current(uint64_t id);

  std::unordered_map<uint64_t, Variable> copies_;  // by the id of the original
};

// What a replica that predicts reads of variables that replicas average
// (VariableAggregation::kMean): the mean that files of the model have, in place of the replica's
// own value.
class CombinedReads {
 public:
  // Takes the means of now, of those among `variables` that have a value in each replica. Outside
  // the replicas; collective where they are in several processes.
  explicit CombinedReads(const std::vector<Variable>& variables);

  // While alive, reads of this thread give these values. Assignments change the replica's own.
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
  // Of this thread's scope; null if there is none.
  static const Tensor* current(uint64_t id);

  std::unordered_map<uint64_t, Tensor> values_;  // by the id of the variable
};

}  // namespace keel
