#include <keel/optimizers/adam_w.h>

namespace keel {

AdamWOptimizer::AdamWOptimizer(Options options)
    : Optimizer(kClassName,
                std::make_shared<AdamRule>(AdamRuleOptions{.beta_1 = options.beta_1,
                                                           .beta_2 = options.beta_2,
                                                           .epsilon = options.epsilon,
                                                           .amsgrad = options.amsgrad}),
                options),
      options_(std::move(options)) {
  if (!options_.weight_decay)
    throw ValueError("AdamW: weight_decay is required, received none; use Adam for no decay");
  check_beta(kClassName, "beta_1", options_.beta_1);
  check_beta(kClassName, "beta_2", options_.beta_2);
  check_not_negative(kClassName, "epsilon", options_.epsilon);
}

}  // namespace keel
