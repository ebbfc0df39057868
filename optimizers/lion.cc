#include <keel/optimizers/lion.h>

#include <keel/framework/kernels/update_rules/dense_update_rules.h>

namespace keel {

LionOptimizer::LionOptimizer(Options options)
    : Optimizer(kClassName, std::make_shared<LionRule>(options.beta_1, options.beta_2), options),
      options_(std::move(options)) {
  if (!(options_.beta_1 > 0 && options_.beta_1 <= 1)) {
    throw ValueError("Lion: beta_1 must be in (0, 1], received ", options_.beta_1);
  }
  check_fraction(kClassName, "beta_2", options_.beta_2);
}

}  // namespace keel
