#include <keel/optimizers/adagrad.h>

namespace keel {

AdagradOptimizer::AdagradOptimizer(Options options)
    : Optimizer(kClassName,
                std::make_shared<AdagradRule>(options.initial_accumulator_value, options.epsilon),
                options),
      options_(std::move(options)) {
  check_not_negative(kClassName, "initial_accumulator_value", options_.initial_accumulator_value);
  check_not_negative(kClassName, "epsilon", options_.epsilon);
}

}  // namespace keel
