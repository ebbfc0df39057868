#include <keel/optimizers/adam.h>

#include <keel/framework/kernels/update_rules/basic_update_rules.h>
#include <keel/framework/kernels/update_rules/dense_update_rules.h>

namespace keel {
namespace {

template <class Options>
std::shared_ptr<const UpdateRule> adam_rule(const Options& options) {
  return std::make_shared<AdamRule>(AdamRuleOptions{.beta_1 = options.beta_1,
                                                    .beta_2 = options.beta_2,
                                                    .epsilon = options.epsilon,
                                                    .amsgrad = options.amsgrad});
}

}  // namespace

void internal::check_moments(const char* caller, double beta_1, double beta_2, double epsilon) {
  check_beta(caller, "beta_1", beta_1);
  check_beta(caller, "beta_2", beta_2);
  check_not_negative(caller, "epsilon", epsilon);
}

std::shared_ptr<const UpdateRule> internal::moment_rule(MomentRule rule, double beta_1,
                                                        double beta_2, double epsilon) {
  const MomentRuleOptions options = {.beta_1 = beta_1, .beta_2 = beta_2, .epsilon = epsilon};
  switch (rule) {
    case MomentRule::kAdamax:
      return std::make_shared<AdamaxRule>(options);
    case MomentRule::kNadam:
      return std::make_shared<NadamRule>(options);
    default:
      return std::make_shared<LambRule>(options);
  }
}

std::shared_ptr<const UpdateRule> AdamOptions::rule() const { return adam_rule(*this); }

void AdamOptions::check(const char* caller) const {
  internal::check_moments(caller, beta_1, beta_2, epsilon);
}

std::shared_ptr<const UpdateRule> AdamWOptions::rule() const { return adam_rule(*this); }

void AdamWOptions::check(const char* caller) const {
  if (!weight_decay) {
    throw ValueError(caller, ": weight_decay is required, received none; use Adam for no decay");
  }
  internal::check_moments(caller, beta_1, beta_2, epsilon);
}

KEEL_REGISTER_ALL(Optimizer, adam_optimizers) {
  registry.add_all<AdamOptimizer, AdamWOptimizer, AdamaxOptimizer, LambOptimizer, NadamOptimizer>(
      {.package = "keras"});
}

}  // namespace keel
