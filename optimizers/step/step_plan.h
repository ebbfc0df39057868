// StepPlan: the stages of one call of apply_gradients other than the rule's arithmetic.
#pragma once

#include <cstdint>

#include <keel/framework/update_rule.h>

namespace keel {

// The stages and their parameters.
struct StepPlan {
  Step step = {};                  // passed to the rule
  bool updates = true;             // false: gradients are only accumulated
  double loss_scale = 1;           // gradients are divided by it
  int64_t accumulation_steps = 1;  // if above 1, gradients are summed over this many calls
  double clipnorm = 0;             // for this and the following three: 0 turns it off
  double clipvalue = 0;
  double global_clipnorm = 0;
  double weight_decay = 0;      // the option of the optimizer
  bool averages = false;        // whether slots keep averages of the variables
  double average_momentum = 0;  // 0 in the first step
  bool overwrites = false;      // whether averages are written into the variables

  bool accumulates() const { return accumulation_steps > 1; }
};

}  // namespace keel
