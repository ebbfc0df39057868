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

KeyedUpdates::KeyedUpdates(const UpdateRule& rule, const std::vector<Gradient>& gradients,
                           const std::vector<Variable>& variables) {
  for (size_t i = 0; i < variables.size(); ++i) {
    KeyedRows* const rows = keyed_rows_of(variables[i]);
    if (rows == nullptr || !gradients[i]) continue;
    rows->set_slots(rule.slots());
    rows->plan_update(gradients[i].slices());
    variables_.push_back(variables[i]);
  }
}

StepVariable KeyedUpdates::committed(const Variable& variable, bool all_rows) {
  KeyedRows::Update update = keyed_rows_of(variable)->commit_update(all_rows);
  return {
      .variable = variable,
      .gradient = std::move(update.rows),
      .form = GradientKind::kRows,
      .memory = {
          .values = update.values, .slots = std::move(update.slots), .row_step = update.row_step}};
}

// All tables end their updates, even if a callback of one of them throws.
void KeyedUpdates::finish() const {
  std::exception_ptr error;
  for (const Variable& variable : variables_) {
    try {
      keyed_rows_of(variable)->finish_update();
    } catch (...) {
      if (error == nullptr) error = std::current_exception();
    }
  }
  if (error != nullptr) std::rethrow_exception(error);
}

}  // namespace keel
