#include <keel/optimizers/adam.h>

namespace keel {

AdamOptimizer::AdamOptimizer(Options options)
    : Optimizer(kClassName,
                std::make_shared<AdamRule>(AdamRuleOptions{.beta_1 = options.beta_1,
                                                           .beta_2 = options.beta_2,
                                                           .epsilon = options.epsilon,
                                                           .amsgrad = options.amsgrad}),
                options),
      options_(std::move(options)) {
  check_beta(kClassName, "beta_1", options_.beta_1);
  check_beta(kClassName, "beta_2", options_.beta_2);
  check_not_negative(kClassName, "epsilon", options_.epsilon);
}

}  // namespace keel
