// ZeroGradientUpdate: a formula for the effect of a step on an element whose gradient is zero.
#pragma once

#include <functional>
#include <vector>

#include <keel/framework/update_rule.h>

namespace keel::kernels {

// A step first scales slots, then changes the weight w by the scaled slots. The formulas hold for
// finite numbers; steps keep finite numbers finite.
struct ZeroGradientUpdate {
  enum class Move {
    kStays,       // w does not change
    kFollows,     // w -= rate factor m; divided by (sqrt(still) + epsilon) if `still` is set, after
                  // still = max(still, spread)
    kDivides,     // w -= rate m / (root(spread) + scale epsilon)
    kSigns,       // w -= rate sign(m)
    kMemoryless,  // w becomes independent of its old value and of earlier steps; slots do not
                  // change, and `spread` must be positive
    kUnknown,     // no formula
  };
  // A slot that each step multiplies by a factor.
  struct Shrinking {
    int slot;
    double factor;
  };

  Move move = Move::kUnknown;
  std::vector<Shrinking> shrinking = {};
  // If `rests` is true, a step does not change a row whose slots listed in zero_at_rest are all
  // zero, apart from weight decay. The other slots are only used under a square root.
  bool rests = false;
  std::vector<int> zero_at_rest = {};

  int m = -1, spread = -1, still = -1;  // slot numbers; -1: none
  bool root = false;                    // root(spread) is sqrt(spread) if true, else spread itself
  double factor = 1, epsilon = 0;
  bool signs_stay = false;  // scaling never rounds a nonzero slot m to 0
  // The step-dependent values: the rate, and the scale of epsilon.
  struct Pace {
    double rate = 0, scale = 1;
  };
  std::function<Pace(const Step&)> pace = {};

  double factor_of(int slot) const;  // factor of a slot per step; 1 if it does not shrink
};

// Returns the formula of a rule. Its numbers are rounded to T, as the rule rounds them when it
// updates elements of type T. The move is kUnknown for rules without a formula.
template <class T>
ZeroGradientUpdate zero_gradient_update(const UpdateRule& rule);

}  // namespace keel::kernels
