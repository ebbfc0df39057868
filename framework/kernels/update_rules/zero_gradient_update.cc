#include <keel/framework/kernels/update_rules/zero_gradient_update.h>

#include <cmath>

#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/update_rules/dense_update_rules.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>

namespace keel::kernels {
namespace {

using Move = ZeroGradientUpdate::Move;
using Pace = ZeroGradientUpdate::Pace;

// Rounds to the precision in which the rule computes.
template <class T>
double rounded(double x) {
  return static_cast<double>(static_cast<T>(x));
}

template <class T>
std::function<Pace(const Step&)> rates() {
  return [](const Step& step) { return Pace{.rate = rounded<T>(step.learning_rate)}; };
}
std::function<Pace(const Step&)> ones() {
  return [](const Step&) { return Pace{.rate = 1}; };
}

// The weights follow a momentum that shrinks geometrically.
ZeroGradientUpdate coasting(double momentum, double factor, std::function<Pace(const Step&)> pace) {
  return {.move = Move::kFollows,
          .shrinking = {{0, momentum}},
          .rests = true,
          .zero_at_rest = {0},
          .m = 0,
          .factor = factor,
          .pace = std::move(pace)};
}

template <class T>
ZeroGradientUpdate of(const SGDRule& rule) {
  if (rule.momentum == 0) return {.move = Move::kStays, .rests = true};
  const double momentum = rounded<T>(rule.momentum);
  return coasting(momentum, rule.nesterov ? -momentum : -1, ones());
}

template <class T>
ZeroGradientUpdate of(const MomentumRule& rule) {
  const double momentum = rounded<T>(rule.momentum);
  return coasting(momentum, rule.nesterov ? momentum : 1, rates<T>());
}

template <class T>
ZeroGradientUpdate of(const AdagradRule&) {
  return {.move = Move::kStays, .rests = true};
}

template <class T>
ZeroGradientUpdate of(const AdamRule& rule) {
  const AdamRuleOptions& o = rule.options;
  ZeroGradientUpdate out = {.move = Move::kDivides,
                            .shrinking = {{0, rounded<T>(o.beta_1)}, {1, rounded<T>(o.beta_2)}},
                            .rests = true,
                            .zero_at_rest = {0, 1},
                            .m = 0,
                            .spread = 1,
                            .root = true,
                            .epsilon = rounded<T>(o.epsilon),
                            .pace = [rule = AdamRule(o)](const Step& step) {
                              return Pace{.rate = rounded<T>(rule.alpha(step))};
                            }};
  if (o.amsgrad) {
    out.move = Move::kFollows;
    out.still = 2;
  } else if (o.sum_inside_sqrt) {
    out.move = Move::kUnknown;
  }
  return out;
}

// With zero gradient both slots keep their values, and w is computed from the slots alone. With
// l2_shrinkage w also changes the linear slot.
template <class T>
ZeroGradientUpdate of(const FtrlRule& rule) {
  return {.move = rule.options.l2_shrinkage == 0 ? Move::kMemoryless : Move::kUnknown, .spread = 0};
}

template <class T>
ZeroGradientUpdate of(const KerasRMSpropRule& rule) {
  const double rho = rounded<T>(rule.options.rho);
  const int slots = static_cast<int>(rule.slots().size());
  ZeroGradientUpdate out = {.move = Move::kStays, .rests = true, .pace = ones()};
  const bool momentum = rule.options.momentum > 0;
  for (int slot = 0; slot < slots; ++slot) {
    out.zero_at_rest.push_back(slot);
    const bool is_momentum = momentum && slot == 1;
    out.shrinking.push_back({slot, is_momentum ? rounded<T>(rule.options.momentum) : rho});
  }
  if (momentum) {
    out.move = Move::kFollows;
    out.m = 1;
  }
  return out;
}

// The rule computes ms += (1 - rho) (0 - ms) with 1 - rho rounded to T, hence this factor of ms.
template <class T>
ZeroGradientUpdate of(const RMSPropRule& rule) {
  return {.move = Move::kFollows,
          .shrinking = {{0, 1 - rounded<T>(1 - rule.rho)}, {1, rounded<T>(rule.momentum)}},
          .rests = true,
          .zero_at_rest = {0, 1},
          .m = 1,
          .pace = ones()};
}

template <class T>
ZeroGradientUpdate of(const AdadeltaRule& rule) {
  const double rho = rounded<T>(rule.rho);
  return {.move = Move::kStays,
          .shrinking = {{0, rho}, {1, rho}},
          .rests = true,
          .zero_at_rest = {0, 1}};
}

double count_of(const Step& step) { return static_cast<double>(step.iteration) + 1; }

template <class T>
ZeroGradientUpdate moments(const MomentRuleOptions& o) {
  return {.move = Move::kDivides,
          .shrinking = {{0, rounded<T>(o.beta_1)}, {1, rounded<T>(o.beta_2)}},
          .rests = true,
          .zero_at_rest = {0, 1},
          .m = 0,
          .spread = 1,
          .epsilon = rounded<T>(o.epsilon)};
}

template <class T>
ZeroGradientUpdate of(const AdamaxRule& rule) {
  ZeroGradientUpdate out = moments<T>(rule.options);
  out.pace = [b1 = rule.options.beta_1](const Step& step) {
    return Pace{.rate = rounded<T>(step.learning_rate / (1 - math::pow(b1, count_of(step))))};
  };
  return out;
}

template <class T>
ZeroGradientUpdate of(const NadamRule& rule) {
  ZeroGradientUpdate out = moments<T>(rule.options);
  out.root = true;
  // x m / (sqrt(v / c) + epsilon), with numerator and denominator multiplied by sqrt(c).
  out.pace = [rule = NadamRule(rule.options)](const Step& step) {
    const double scale = std::sqrt(rounded<T>(1 - math::pow(rule.options.beta_2, count_of(step))));
    return Pace{.rate = rounded<T>(rule.rate_of_momentum(step)) * scale, .scale = scale};
  };
  return out;
}

template <class T>
ZeroGradientUpdate of(const LionRule& rule) {
  return {.move = Move::kSigns,
          .shrinking = {{0, rounded<T>(rule.beta_2)}},
          .rests = true,
          .zero_at_rest = {0},
          .m = 0,
          // With T's rounding, a product with a factor above 1/2 never rounds the last bit away.
          .signs_stay = rule.beta_1 > 0.5 && rule.beta_2 > 0.5,
          .pace = rates<T>()};
}

template <class T>
ZeroGradientUpdate of(const EngineRule& rule) {
  return zero_gradient_update<T>(*rule.base);
}

// Returns the formula of the first class in `Rules` that the rule is an instance of.
template <class T, class... Rules>
ZeroGradientUpdate as_one_of(const UpdateRule& rule) {
  ZeroGradientUpdate out;
  const auto is = [&]<class R>(const R* found) {
    if (found == nullptr) return false;
    out = of<T>(*found);
    return true;
  };
  (is(dynamic_cast<const Rules*>(&rule)) || ...);
  return out;
}

}  // namespace

double ZeroGradientUpdate::factor_of(int slot) const {
  for (const Shrinking& s : shrinking) {
    if (s.slot == slot) return s.factor;
  }
  return 1;
}

template <class T>
ZeroGradientUpdate zero_gradient_update(const UpdateRule& rule) {
  return as_one_of<T, SGDRule, AdagradRule, AdamRule, FtrlRule, KerasRMSpropRule, AdadeltaRule,
                   AdamaxRule, NadamRule, LionRule, MomentumRule, RMSPropRule, EngineRule>(rule);
}

template ZeroGradientUpdate zero_gradient_update<float>(const UpdateRule&);
template ZeroGradientUpdate zero_gradient_update<double>(const UpdateRule&);

}  // namespace keel::kernels
