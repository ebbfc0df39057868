// KeyedUpdates: the part of an optimizer step that concerns tables with dynamic ids.
#pragma once

#include <span>
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

// The updates of the tables with dynamic ids that have a gradient in some replica. Call the
// functions in their order. Any number of replicas may call append() concurrently.
class KeyedUpdates {
 public:
  // Gives the tables the slots of the rule and plans their updates. `gradients` are those of the
  // replicas of this process, in their order, and `forms` the kinds of the variables' gradients in
  // the replicas of all processes. Throws RuntimeError, before any value has changed, if a table is
  // full. Collective over the processes of the strategy.
  KeyedUpdates(const UpdateRule& rule, std::span<const std::vector<Gradient>* const> gradients,
               const std::vector<GradientKind>& forms, const std::vector<Variable>& variables);
  // Admits keys. `moves_all_rows(variable)` is true if the step changes rows without a gradient.
  template <class MovesAllRows>
  void commit(const MovesAllRows& moves_all_rows) {
    for (Table& table : tables_) commit(table, moves_all_rows(table.variable));
  }
  // Appends the tables to the variables that a replica passes to the step.
  void append(size_t replica, std::vector<StepVariable>& updated) const;
  // Evicts keys.
  void finish() const;

 private:
  struct Table {
    Variable variable;
    std::vector<int> numbers;  // by replica: the number of its gradient in `update`, or -1
    bool all_rows = false;
    KeyedRows::Update update = {};
  };
  static void commit(Table& table, bool all_rows);

  std::vector<Table> tables_;
};

}  // namespace keel
