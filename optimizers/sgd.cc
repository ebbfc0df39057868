#include <keel/optimizers/sgd.h>

namespace keel {

SGDOptimizer::SGDOptimizer(Options options)
    : Optimizer(kClassName, std::make_shared<SGDRule>(options.momentum, options.nesterov), options),
      options_(std::move(options)) {
  check_fraction(kClassName, "momentum", options_.momentum);
}

}  // namespace keel
