#include "optimizers/adagrad.h"

namespace keel {

AdagradOptimizer::AdagradOptimizer(Options options)
    : Optimizer(kClassName,
                std::make_shared<AdagradRule>(options.initial_accumulator_value, options.epsilon),
                options.learning_rate, options.name),
      options_(std::move(options)) {
  if (!(options_.initial_accumulator_value >= 0)) {
    throw ValueError("Adagrad: initial_accumulator_value must not be negative, received ",
                     options_.initial_accumulator_value);
  }
  if (!(options_.epsilon >= 0)) {
    throw ValueError("Adagrad: epsilon must not be negative, received ", options_.epsilon);
  }
}

Config AdagradOptimizer::get_config() const { return config_of(options_); }

}  // namespace keel
