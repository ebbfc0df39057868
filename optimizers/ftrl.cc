#include <keel/optimizers/ftrl.h>

namespace keel {

FtrlOptimizer::FtrlOptimizer(Options options)
    : Optimizer(kClassName,
                std::make_shared<FtrlRule>(
                    FtrlRuleOptions{.learning_rate_power = options.learning_rate_power,
                                    .initial_accumulator_value = options.initial_accumulator_value,
                                    .l1 = options.l1_regularization_strength,
                                    .l2 = options.l2_regularization_strength,
                                    .beta = options.beta,
                                    .l2_shrinkage = options.l2_shrinkage_regularization_strength}),
                options),
      options_(std::move(options)) {
  if (!(options_.learning_rate_power <= 0)) {
    throw ValueError("Ftrl: learning_rate_power must not be positive, received ",
                     options_.learning_rate_power);
  }
  check_not_negative(kClassName, "initial_accumulator_value", options_.initial_accumulator_value);
  check_not_negative(kClassName, "l1_regularization_strength", options_.l1_regularization_strength);
  check_not_negative(kClassName, "l2_regularization_strength", options_.l2_regularization_strength);
  check_not_negative(kClassName, "l2_shrinkage_regularization_strength",
                     options_.l2_shrinkage_regularization_strength);
  check_not_negative(kClassName, "beta", options_.beta);
}

}  // namespace keel
