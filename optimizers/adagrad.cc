#include <keel/optimizers/adagrad.h>

#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/framework/kernels/update_rules/dense_update_rules.h>

namespace keel {

std::shared_ptr<const UpdateRule> AdagradOptions::rule() const {
  return std::make_shared<AdagradRule>(initial_accumulator_value, epsilon);
}

void AdagradOptions::check(const char* caller) const {
  check_not_negative(caller, "initial_accumulator_value", initial_accumulator_value);
  check_not_negative(caller, "epsilon", epsilon);
}

std::shared_ptr<const UpdateRule> AdadeltaOptions::rule() const {
  return std::make_shared<AdadeltaRule>(rho, epsilon);
}

void AdadeltaOptions::check(const char* caller) const {
  check_fraction(caller, "rho", rho);
  check_not_negative(caller, "epsilon", epsilon);
}

std::shared_ptr<const UpdateRule> RMSpropOptions::rule() const {
  return std::make_shared<KerasRMSpropRule>(KerasRMSpropRuleOptions{
      .rho = rho, .momentum = momentum, .epsilon = epsilon, .centered = centered});
}

void RMSpropOptions::check(const char* caller) const {
  check_fraction(caller, "rho", rho);
  check_fraction(caller, "momentum", momentum);
  check_not_negative(caller, "epsilon", epsilon);
}

std::shared_ptr<const UpdateRule> FtrlOptions::rule() const {
  return std::make_shared<FtrlRule>(
      FtrlRuleOptions{.learning_rate_power = learning_rate_power,
                      .initial_accumulator_value = initial_accumulator_value,
                      .l1 = l1_regularization_strength,
                      .l2 = l2_regularization_strength,
                      .beta = beta,
                      .l2_shrinkage = l2_shrinkage_regularization_strength});
}

void FtrlOptions::check(const char* caller) const {
  if (!(learning_rate_power <= 0)) {
    throw ValueError(caller, ": learning_rate_power must not be positive, received ",
                     learning_rate_power);
  }
  check_not_negative(caller, "initial_accumulator_value", initial_accumulator_value);
  check_not_negative(caller, "l1_regularization_strength", l1_regularization_strength);
  check_not_negative(caller, "l2_regularization_strength", l2_regularization_strength);
  check_not_negative(caller, "l2_shrinkage_regularization_strength",
                     l2_shrinkage_regularization_strength);
  check_not_negative(caller, "beta", beta);
}

KEEL_REGISTER_ALL(Optimizer, adagrad_optimizers) {
  registry.add_all<AdadeltaOptimizer, AdagradOptimizer, FtrlOptimizer, RMSpropOptimizer>(
      {.package = "keras"});
}

}  // namespace keel
