#include <keel/optimizers/nadam.h>

#include <keel/framework/kernels/update_rules/dense_update_rules.h>

namespace keel {

NadamOptimizer::NadamOptimizer(Options options)
    : Optimizer(
          kClassName,
          std::make_shared<NadamRule>(MomentRuleOptions{
              .beta_1 = options.beta_1, .beta_2 = options.beta_2, .epsilon = options.epsilon}),
          options),
      options_(std::move(options)) {
  check_beta(kClassName, "beta_1", options_.beta_1);
  check_beta(kClassName, "beta_2", options_.beta_2);
  check_not_negative(kClassName, "epsilon", options_.epsilon);
}

}  // namespace keel
