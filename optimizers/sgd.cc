#include <keel/optimizers/sgd.h>

#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/framework/kernels/update_rules/dense_update_rules.h>

namespace keel {

std::shared_ptr<const UpdateRule> SGDOptions::rule() const {
  return std::make_shared<SGDRule>(momentum, nesterov);
}

void SGDOptions::check(const char* caller) const { check_fraction(caller, "momentum", momentum); }

std::shared_ptr<const UpdateRule> LionOptions::rule() const {
  return std::make_shared<LionRule>(beta_1, beta_2);
}

void LionOptions::check(const char* caller) const {
  if (!(beta_1 > 0 && beta_1 <= 1)) {
    throw ValueError(caller, ": beta_1 must be in (0, 1], received ", beta_1);
  }
  check_fraction(caller, "beta_2", beta_2);
}

KEEL_REGISTER_ALL(Optimizer, sgd_optimizers) {
  registry.add_all<LionOptimizer, SGDOptimizer>({.package = "keras"});
}

}  // namespace keel
