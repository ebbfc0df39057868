#include "optimizers/ftrl.h"

namespace keel {
namespace {

void check_not_negative(const char* name, double value) {
  if (!(value >= 0)) throw ValueError("Ftrl: ", name, " must not be negative, received ", value);
}

}  // namespace

FtrlOptimizer::FtrlOptimizer(Options options)
    : Optimizer(kClassName,
                std::make_shared<FtrlRule>(FtrlOptionsOfRule{
                    .learning_rate_power = options.learning_rate_power,
                    .initial_accumulator_value = options.initial_accumulator_value,
                    .l1 = options.l1_regularization_strength,
                    .l2 = options.l2_regularization_strength,
                    .beta = options.beta}),
                options.learning_rate, options.name),
      options_(std::move(options)) {
  if (!(options_.learning_rate_power <= 0)) {
    throw ValueError("Ftrl: learning_rate_power must not be positive, received ",
                     options_.learning_rate_power);
  }
  check_not_negative("initial_accumulator_value", options_.initial_accumulator_value);
  check_not_negative("l1_regularization_strength", options_.l1_regularization_strength);
  check_not_negative("l2_regularization_strength", options_.l2_regularization_strength);
  check_not_negative("beta", options_.beta);
  if (options_.l2_shrinkage_regularization_strength != 0) {
    throw ValueError("Ftrl: l2_shrinkage_regularization_strength must be 0, received ",
                     options_.l2_shrinkage_regularization_strength);
  }
}

Config FtrlOptimizer::get_config() const { return config_of(options_); }

}  // namespace keel
