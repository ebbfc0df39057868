#include <keel/optimizers/step/keyed_updates.h>

#include <exception>

#include <keel/framework/whole_variable_rule.h>

namespace keel {

void check_keyed(const std::string& caller, const StepPlan& plan, const UpdateRule& rule,
                 const Variable& variable) {
  const auto refuse = [&](const std::string& what) {
    throw ValueError(caller, ": ", what, " cannot train ", variable.path(),
                     ", a table with dynamic ids; use another optimizer for it");
  };
  if (plan.averages) refuse("use_ema");
  if (plan.accumulates()) refuse("gradient_accumulation_steps");
  if (variable.constraint()) refuse("a constraint");
  if (dynamic_cast<const LayerwiseRule*>(&rule) != nullptr ||
      dynamic_cast<const WholeVariableRule*>(&rule) != nullptr ||
      dynamic_cast<const VariableSlots*>(&rule) != nullptr) {
    refuse("an optimizer that needs whole variables");
  }
}

KeyedUpdates::KeyedUpdates(const UpdateRule& rule,
                           std::span<const std::vector<Gradient>* const> gradients,
                           const std::vector<GradientKind>& forms,
                           const std::vector<Variable>& variables) {
  for (size_t i = 0; i < variables.size(); ++i) {
    KeyedRows* const rows = keyed_rows_of(variables[i]);
    if (rows == nullptr || forms[i] == GradientKind::kNone) continue;
    Table table = {.variable = variables[i], .numbers = {}};
    std::vector<IndexedSlices> present;
    for (const std::vector<Gradient>* const of_replica : gradients) {
      const Gradient& gradient = (*of_replica)[i];
      table.numbers.push_back(gradient ? static_cast<int>(present.size()) : -1);
      if (gradient) present.push_back(gradient.slices());
    }
    rows->set_slots(rule.slots());
    rows->plan_update(std::move(present));
    tables_.push_back(std::move(table));
  }
}

void KeyedUpdates::commit(Table& table, bool all_rows) {
  table.all_rows = all_rows;
  table.update = keyed_rows_of(table.variable)->commit_update(all_rows);
}

void KeyedUpdates::append(size_t replica, std::vector<StepVariable>& updated) const {
  for (const Table& table : tables_) {
    const int number = table.numbers[replica];
    updated.push_back({.variable = table.variable,
                       .gradient = number < 0 ? Gradient() : Gradient(table.update.rows[number]),
                       .form = GradientKind::kRows,
                       .memory = {.values = table.update.values,
                                  .slots = table.update.slots,
                                  .row_step = table.update.row_step,
                                  .regularization = table.variable.row_regularization()},
                       .sums_as_dense = table.all_rows});
  }
}

// All tables end their updates, even if a callback of one of them throws.
void KeyedUpdates::finish() const {
  std::exception_ptr error;
  for (const Table& table : tables_) {
    try {
      keyed_rows_of(table.variable)->finish_update();
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace keel
