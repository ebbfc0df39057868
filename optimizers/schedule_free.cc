#include <keel/optimizers/schedule_free.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/kernels/update_rules/whole_variable_rules.h>

namespace keel {

std::shared_ptr<const UpdateRule> ScheduleFreeAdamWOptions::rule() const {
  return std::make_shared<ScheduleFreeAdamWRule>(ScheduleFreeAdamWRuleOptions{
      .beta_1 = beta_1, .beta_2 = beta_2, .epsilon = epsilon, .warmup_steps = warmup_steps});
}

void ScheduleFreeAdamWOptions::check(const char* caller) const {
  if (!(beta_1 > 0 && beta_1 < 1)) {
    throw ValueError(caller, ": beta_1 must be in (0, 1), received ", beta_1);
  }
  check_beta(caller, "beta_2", beta_2);
  check_not_negative(caller, "epsilon", epsilon);
  check_not_negative(caller, "warmup_steps", static_cast<double>(warmup_steps));
}

ScheduleFreeAdamWOptimizer::ScheduleFreeAdamWOptimizer(Options options)
    : Optimizer(kClassName, options.rule(), options), options_(std::move(options)) {
  options_.check(kClassName);
}

void ScheduleFreeAdamWOptimizer::swap(const char* caller, const std::vector<Variable>& variables,
                                      bool to_eval) {
  if (current_replica_context() != nullptr && current_replica_context()->replicas > 1) {
    throw RuntimeError(caller,
                       ": must be called outside of replicas; call it from the main program");
  }
  if (holds_average_ == to_eval) {
    throw RuntimeError(caller, ": the variables already hold the values for ",
                       to_eval ? "evaluation; call swap_to_train() before the next call"
                               : "training; call swap_to_eval() before the next call");
  }
  const NoGradient pause;
  for (const Variable& variable : variables) {
    const std::vector<Variable> slots = this->slots(variable);
    if (slots.empty()) continue;
    const Tensor z = ops::scale(slots[0].read(), 1 - options_.beta_1);
    const Tensor value = variable.read();
    variable.assign(to_eval ? ops::scale(value - z, 1 / options_.beta_1)
                            : ops::scale(value, options_.beta_1) + z);
  }
  holds_average_ = to_eval;
}

void ScheduleFreeAdamWOptimizer::swap_to_eval(const std::vector<Variable>& variables) {
  swap("ScheduleFreeAdamW.swap_to_eval", variables, true);
}

void ScheduleFreeAdamWOptimizer::swap_to_train(const std::vector<Variable>& variables) {
  swap("ScheduleFreeAdamW.swap_to_train", variables, false);
}

KEEL_REGISTER_ALL(Optimizer, schedule_free_optimizers) {
  registry.add_all<ScheduleFreeAdamWOptimizer>({.package = "keras"});
}

}  // namespace keel
