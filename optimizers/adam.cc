#include "optimizers/adam.h"

namespace keel {
namespace {

void check_beta(const char* name, double beta) {
  if (!(beta >= 0 && beta < 1)) {
    throw ValueError("Adam: ", name, " must be in [0, 1), received ", beta);
  }
}

}  // namespace

AdamOptimizer::AdamOptimizer(Options options)
    : Optimizer(
          kClassName,
          std::make_shared<AdamRule>(AdamOptionsOfRule{
              .beta_1 = options.beta_1, .beta_2 = options.beta_2, .epsilon = options.epsilon}),
          options.learning_rate, options.name),
      options_(std::move(options)) {
  check_beta("beta_1", options_.beta_1);
  check_beta("beta_2", options_.beta_2);
  if (!(options_.epsilon >= 0)) {
    throw ValueError("Adam: epsilon must not be negative, received ", options_.epsilon);
  }
}

Config AdamOptimizer::get_config() const { return config_of(options_); }

}  // namespace keel
