#include <keel/optimizers/rmsprop.h>

#include <keel/framework/kernels/update_rules/dense_update_rules.h>

namespace keel {

RMSpropOptimizer::RMSpropOptimizer(Options options)
    : Optimizer(
          kClassName,
          std::make_shared<KerasRMSpropRule>(KerasRMSpropRuleOptions{.rho = options.rho,
                                                                     .momentum = options.momentum,
                                                                     .epsilon = options.epsilon,
                                                                     .centered = options.centered}),
          options),
      options_(std::move(options)) {
  check_fraction(kClassName, "rho", options_.rho);
  check_fraction(kClassName, "momentum", options_.momentum);
  check_not_negative(kClassName, "epsilon", options_.epsilon);
}

}  // namespace keel
