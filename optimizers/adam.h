// Adam (Kingma and Ba 2015), with bias correction.
#pragma once

#include "optimizers/optimizer.h"

namespace keel {

struct AdamOptions {
  LearningRate learning_rate = 0.001;
  double beta_1 = 0.9;    // in [0, 1) (ValueError)
  double beta_2 = 0.999;  // in [0, 1) (ValueError)
  double epsilon = 1e-7;  // >= 0 (ValueError)
  std::string name = {};

  static void fields(auto& self, auto&& field) {
    field("name", self.name);
    field("learning_rate", self.learning_rate);
    field("beta_1", self.beta_1);
    field("beta_2", self.beta_2);
    field("epsilon", self.epsilon);
  }
};

// m = b1 m + (1 - b1) g; v = b2 v + (1 - b2) g^2; w -= alpha m / (sqrt(v) + epsilon) with
// alpha = lr sqrt(1 - b2^t) / (1 - b1^t) in step t, from 1. Slots "momentum" (m), "velocity" (v).
class AdamOptimizer final : public Optimizer {
 public:
  static constexpr char kClassName[] = "Adam";
  using Options = AdamOptions;
  explicit AdamOptimizer(Options options);
  Config get_config() const override;
  const Options& options() const { return options_; }

 private:
  const Options options_;
};

namespace optimizers {
using Adam = Handle<AdamOptimizer>;
}

}  // namespace keel
