#include <keel/optimizers/adadelta.h>

#include <keel/framework/kernels/update_rules/dense_update_rules.h>

namespace keel {

AdadeltaOptimizer::AdadeltaOptimizer(Options options)
    : Optimizer(kClassName, std::make_shared<AdadeltaRule>(options.rho, options.epsilon), options),
      options_(std::move(options)) {
  check_fraction(kClassName, "rho", options_.rho);
  check_not_negative(kClassName, "epsilon", options_.epsilon);
}

}  // namespace keel
