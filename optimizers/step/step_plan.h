// StepPlan: what one call of apply_gradients does besides the rule's arithmetic.
#pragma once

#include <cstdint>

#include <keel/framework/kernels/update_rules/update_rule.h>

namespace keel {

struct StepPlan {
  Step step = {};                  // the rule's
  bool updates = true;             // false: gradients only go to the accumulators
  double loss_scale = 1;           // divides gradients
  int64_t accumulation_steps = 1;  // accumulators sum gradients over so many calls if above 1
  double clipnorm = 0;             // this and those below: 0 for none
  double clipvalue = 0;
  double global_clipnorm = 0;
  double weight_decay = 0;
  bool averages = false;        // the variables, in slots
  double average_momentum = 0;  // 0 in the first step
  bool overwrites = false;      // variables by their averages

  bool accumulates() const { return accumulation_steps > 1; }
};

}  // namespace keel
