// KeyedUpdates: the part of an optimizer step that concerns tables with dynamic ids.
#pragma once

#include <string>
#include <vector>

#include <keel/autodiff/internal/variable_storage.h>
#include <keel/optimizers/step/optimizer_step.h>

namespace keel {

// Returns the rows of a table with dynamic ids; null for other variables.
inline KeyedRows* keyed_rows_of(const Variable& variable) {
  return VariableStorage(variable).keyed_rows();
}

// Throws ValueError, naming `caller` and the variable, if a step cannot train a table with dynamic
// ids: with a constraint, with use_ema or gradient_accumulation_steps, and by a rule that needs
// whole variables.
void check_keyed(const std::string& caller, const StepPlan& plan, const UpdateRule& rule,
                 const Variable& variable);

// The updates of the tables with dynamic ids that have a gradient. Call the functions in their
// order.
class KeyedUpdates {
 public:
  // Gives the tables the slots of the rule and plans their updates. Throws RuntimeError, before any
  // value has changed, if a table is full.
  KeyedUpdates(const UpdateRule& rule, const std::vector<Gradient>& gradients,
               const std::vector<Variable>& variables);
  // Admits keys and appends the tables to the variables of the step. `moves_all_rows(variable)` is
  // true if the step changes rows without a gradient.
  template <class MovesAllRows>
  void commit(std::vector<StepVariable>& updated, const MovesAllRows& moves_all_rows) {
    for (const Variable& variable : variables_) {
      updated.push_back(committed(variable, moves_all_rows(variable)));
    }
  }
  // Evicts keys.
  void finish() const;

 private:
  static StepVariable committed(const Variable& variable, bool all_rows);

  std::vector<Variable> variables_;
};

}  // namespace keel
