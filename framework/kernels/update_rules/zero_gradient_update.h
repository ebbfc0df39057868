// ZeroGradientUpdate: what a step does to an element whose gradient is zero, as a formula.
#pragma once

#include <functional>
#include <vector>

#include <keel/framework/kernels/update_rules/update_rule.h>

namespace keel::kernels {

// A step first shrinks slots, then moves the weight w by what they are then. All of it is said of
// finite numbers, which steps leave finite.
struct ZeroGradientUpdate {
  enum class Move {
    kStays,    // not at all
    kFollows,  // w -= rate factor m, over (sqrt(still) + epsilon) if there is a slot `still`,
               // which is raised to `spread` before
    kDivides,  // w -= rate m / (root(spread) + scale epsilon)
    kSigns,    // w -= rate sign(m)
    kForgets,  // to a value that neither w nor earlier steps count in; slots stay, of which
               // `spread` is positive
    kUnknown,  // there is no formula
  };
  // slot *= factor.
  struct Shrinking {
    int slot;
    double factor;
  };

  Move move = Move::kUnknown;
  std::vector<Shrinking> shrinking = {};
  // A row whose slots of these numbers are all zero is what a step makes of it; the others stand
  // under a root.
  bool rests = false;
  std::vector<int> zero_at_rest = {};

  int m = -1, spread = -1, still = -1;  // slots
  bool root = false;                    // sqrt(spread), else spread itself
  double factor = 1, epsilon = 0;
  bool signs_stay = false;  // a slot m that is not 0 does not become 0
  // Of a step: what the rule makes of its rate.
  struct Pace {
    double rate = 0, scale = 1;
  };
  std::function<Pace(const Step&)> pace = {};

  double factor_of(int slot) const;  // 1 if it does not shrink
};

// The numbers are those that the rule computes with in elements of type T.
template <class T>
ZeroGradientUpdate zero_gradient_update(const UpdateRule& rule);

}  // namespace keel::kernels
