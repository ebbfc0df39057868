#include "optimizers/sgd.h"

namespace keel {

SGDOptimizer::SGDOptimizer(Options options)
    : Optimizer(kClassName, std::make_shared<SGDRule>(options.momentum, options.nesterov),
                options.learning_rate, options.name),
      options_(std::move(options)) {
  if (!(options_.momentum >= 0 && options_.momentum <= 1)) {
    throw ValueError("SGD: momentum must be in [0, 1], received ", options_.momentum);
  }
}

Config SGDOptimizer::get_config() const { return config_of(options_); }

}  // namespace keel
