#include <keel/framework/kernels/update_rules/closed_form.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <keel/framework/internal/math.h>
#include <keel/framework/kernels/constant_dim.h>
#include <keel/framework/kernels/update_rules/smallest_root.h>

namespace keel::kernels {
namespace {

using Move = ZeroGradientUpdate::Move;
using Pace = ZeroGradientUpdate::Pace;

constexpr double kVanished = 1e-12;  // relative to the sum
constexpr double kSeriesError = 1e-9;
constexpr int64_t kLongestWindow = 8192;
constexpr int64_t kPiece = 64;  // elements that fit in the stack arrays of divide_step_by_step()

// Returns the number of steps after which ratio^j has vanished, or 0 if it exceeds kLongestWindow.
int64_t window_of(double ratio) {
  if (ratio <= 0) return 1;
  if (ratio >= 1) return 0;
  const double steps = math::log(kVanished * (1 - ratio)) / math::log(ratio);
  return steps < static_cast<double>(kLongestWindow) ? static_cast<int64_t>(steps) + 1 : 0;
}

// Returns the factor by which 1 / root(spread) grows per step.
double growth_of(const ZeroGradientUpdate& formula) {
  if (formula.move != Move::kDivides) return 1;
  const double factor = formula.factor_of(formula.spread);
  return 1 / (formula.root ? std::sqrt(factor) : factor);
}

template <class T>
double root_of(const ZeroGradientUpdate& formula, T spread) {
  return formula.root ? std::sqrt(static_cast<double>(spread)) : static_cast<double>(spread);
}

// Returns the least of n numbers that are not negative. The bits of such numbers have the order of
// the numbers, and integers compare faster.
template <class T>
T least_of(const T* x, int64_t n) {
  using Bits = std::conditional_t<sizeof(T) == sizeof(float), int32_t, int64_t>;
  auto least = std::bit_cast<Bits>(x[0]);
  for (int64_t i = 1; i < n; ++i) least = std::min(least, std::bit_cast<Bits>(x[i]));
  return std::bit_cast<T>(least);
}

// The combined effect of many steps on a row.
struct AtOnce {
  double epsilon;  // epsilon of the first step
  double kept;     // factor of weights that only decay
  double left_of_m, left_of_spread;
};

// Multiplies by a factor in double precision, split into two numbers of type T. A factor rounded to
// T would bias all products in the same direction.
template <class T>
struct Factor {
  explicit Factor(double factor)
      : high(static_cast<T>(factor)), low(static_cast<T>(factor - static_cast<double>(high))) {}
  T operator()(T x) const { return high * x + low * x; }
  T high, low;
};

// Decays w and subtracts m times the series in epsilon's share of the divisor; scales m and spread.
// Computes in T, which takes a third of the time of double. It rounds only a few times, whereas
// single steps round once per step.
template <bool kRoot, class T, size_t kTerms>
void take_series(T* __restrict w, T* __restrict m, T* __restrict spread, int64_t n,
                 const std::array<double, kTerms>& sums, const AtOnce& steps) {
  static_assert(kTerms == 6);
  std::array<T, kTerms> g;
  for (size_t i = 0; i < kTerms; ++i) g[i] = static_cast<T>(sums[i]);
  const T smallest = smallest_root<T>();
  const T epsilon = static_cast<T>(steps.epsilon);
  const bool decays = steps.kept != 1;
  const Factor<T> kept(steps.kept);
  const Factor<T> left_of_m(steps.left_of_m), left_of_spread(steps.left_of_spread);
  for (int64_t i = 0; i < n; ++i) {
    const T root = std::max((kRoot ? std::sqrt(spread[i]) : spread[i]) + epsilon, smallest);
    const T u = epsilon / root;
    const T sum = g[0] - u * (g[1] - u * (g[2] - u * (g[3] - u * g[4])));
    w[i] = (decays ? kept(w[i]) : w[i]) - sum * m[i] / root;
    m[i] = left_of_m(m[i]);
    spread[i] = left_of_spread(spread[i]);
  }
}

}  // namespace

bool ClosedForm::exists(const ZeroGradientUpdate& formula) {
  switch (formula.move) {
    case Move::kUnknown:
      return false;
    case Move::kFollows:
      return window_of(formula.factor_of(formula.m)) > 0;
    case Move::kDivides:
      // If the quotient's terms do not vanish, epsilon still bounds the divisor from below, so the
      // terms vanish as fast as m does.
      return window_of(formula.factor_of(formula.m) * growth_of(formula)) > 0 ||
             (formula.epsilon > 0 && window_of(formula.factor_of(formula.m)) > 0);
    case Move::kSigns:
      return formula.signs_stay;
    default:
      return true;
  }
}

ClosedForm::ClosedForm(const ZeroGradientUpdate& formula)
    : formula_(formula), shrunk_(formula.shrinking.size(), 1) {
  // This holds for every rule with Move::kDivides.
  divides_moments_ = formula_.move == Move::kDivides && formula_.shrinking.size() == 2 &&
                     formula_.shrinking[0].slot == formula_.m &&
                     formula_.shrinking[1].slot == formula_.spread;
  if (formula_.move != Move::kFollows && formula_.move != Move::kDivides) return;
  ratio_ = formula_.factor_of(formula_.m);
  growth_ = growth_of(formula_);
  if (std::isfinite(growth_)) window_ = window_of(ratio_ * growth_);
  powers_.resize(window_ + 1);
  growths_.resize(window_ + 1);
  for (int64_t j = 0; j <= window_; ++j) {
    powers_[j] = math::pow(ratio_ * growth_, static_cast<double>(j));
    growths_[j] = math::pow(growth_, static_cast<double>(j));
  }
}

void ClosedForm::add(const Pace& pace, double decay) {
  decays_ = decays_ || decay != 0;
  for (const auto& shrinking : formula_.shrinking) {
    shrunk_.push_back(math::pow(shrinking.factor, size() + 1.0));
  }
  steps_.push_back({.pace = pace});
  decays_by_step_.push_back(decay);
  // A step that decays weights to zero adds -infinity, and the difference of two such sums is NaN.
  // catch_up() rejects both.
  log_kept_.push_back(log_kept_.back() + math::log1p(-decay));
  if (formula_.move == Move::kSigns) signs_.push_back(signs_.back() * (1 - decay) + pace.rate);
  if (window_ > 0) add_to_sums(pace, decay);
}

void ClosedForm::add_to_sums(const Pace& pace, double decay) {
  const int64_t now = size() - 1;
  const bool series = formula_.move == Move::kDivides && formula_.epsilon > 0;
  for (int64_t from = std::max<int64_t>(0, now + 1 - window_); from <= now; ++from) {
    const int64_t j = now - from + 1;
    double term = pace.rate * powers_[j];
    // The part of a weight that earlier steps have subtracted decays as the weight does.
    Sums& sums = steps_[from].sums;
    sums[0] = sums[0] * (1 - decay) + term;
    if (!series) continue;
    const double excess = pace.scale / steps_[from].pace.scale * growths_[j] - 1;
    for (int n = 1; n < kTerms; ++n) sums[n] = sums[n] * (1 - decay) + (term *= excess);
  }
}

double ClosedForm::kept(int64_t from, int64_t to) const {
  return decays_ ? math::exp(log_kept_[to] - log_kept_[from]) : 1;
}

double ClosedForm::kept_of_sums(int64_t from) const {
  return from + window_ < size() ? kept(from + window_, size()) : 1;
}

template <class T>
bool ClosedForm::catch_up(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const {
  const double keeps = kept(from, to);
  if (!std::isfinite(keeps) || keeps == 0) return false;
  switch (formula_.move) {
    case Move::kStays:
      if (keeps != 1) {
        for (int64_t i = 0; i < n; ++i) w[i] = static_cast<T>(keeps * w[i]);
      }
      break;
    case Move::kFollows:
      follow(w, slots, n, from, to);
      break;
    case Move::kDivides:
      if (to == size() &&
          divide_by_series<0>(w, slots[formula_.m], slots[formula_.spread], n, from, keeps)) {
        return true;
      }
      divide(w, slots, n, from, to);
      break;
    case Move::kSigns:
      sign(w, slots, n, from, to);
      break;
    default:
      return false;
  }
  shrink(slots, n, to - from);
  return true;
}

// Returns the multiple of m that the steps [from, to) subtract from a weight, without
// formula_.factor.
double ClosedForm::following(int64_t from, int64_t to) const {
  if (to == size()) return kept_of_sums(from) * steps_[from].sums[0];
  double sum = 0;
  const int64_t end = std::min(to, from + window_);
  for (int64_t i = from; i < end; ++i) {
    sum = sum * (1 - decays_by_step_[i]) + steps_[i].pace.rate * powers_[i - from + 1];
  }
  return sum * kept(end, to);
}

template <class T>
void ClosedForm::follow(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const {
  const double keeps = kept(from, to);
  const double moved = formula_.factor * following(from, to);
  const T* m = slots[formula_.m];
  if (formula_.still < 0) {
    for (int64_t i = 0; i < n; ++i) w[i] = static_cast<T>(keeps * w[i] - moved * m[i]);
    return;
  }
  const T* spread = slots[formula_.spread];
  T* still = slots[formula_.still];
  const double factor = formula_.factor_of(formula_.spread);
  const double smallest = smallest_root<T>();
  for (int64_t i = 0; i < n; ++i) {
    still[i] = std::max(still[i], static_cast<T>(factor * spread[i]));
    const double root =
        std::max(std::sqrt(static_cast<double>(still[i])) + formula_.epsilon, smallest);
    w[i] = static_cast<T>(keeps * w[i] - moved * m[i] / root);
  }
}

template <class T>
void ClosedForm::divide(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const {
  for (int64_t i = 0; i < n; i += kPiece) {
    T* const piece[] = {slots[formula_.m] + i, slots[formula_.spread] + i};
    divide_step_by_step(w + i, piece, std::min(kPiece, n - i), from, to);
  }
}

// Applies all steps from `from` on to kDim elements, or to n elements if kDim is 0. `keeps` is the
// decay factor of the weights. Returns false and changes nothing if there is no series, or if it
// does not converge for one of the elements.
template <int64_t kDim, class T>
bool ClosedForm::divide_by_series(T* w, T* m, T* spread, int64_t n_, int64_t from,
                                  double keeps) const {
  if (window_ == 0 || !divides_moments_) return false;
  const int64_t n = kDim > 0 ? kDim : n_;
  const double epsilon = formula_.epsilon * steps_[from].pace.scale;
  Sums g = steps_[from].sums;
  if (decays_) {
    const double keeps_of_sums = kept_of_sums(from);
    for (double& sum : g) sum *= keeps_of_sums;
  }
  // epsilon's share of the divisor is largest where the spread is smallest.
  const double least = root_of(formula_, least_of(spread, n));
  const double share = epsilon / std::max(least + epsilon, smallest_root<T>() * 1.0);
  // All terms of g are positive, so the truncated part of the alternating series is less than the
  // next term.
  const double squared = share * share;
  if (!(squared * squared * share * g[kTerms - 1] <= kSeriesError * g[0])) return false;
  constexpr double kLargest = std::numeric_limits<T>::max();
  if (!std::ranges::all_of(g, [](double sum) { return std::abs(sum) <= kLargest; })) return false;
  const int64_t steps = size() - from;
  const AtOnce at_once = {.epsilon = epsilon,
                          .kept = keeps,
                          .left_of_m = left_of(0, steps),
                          .left_of_spread = left_of(1, steps)};
  formula_.root ? take_series<true>(w, m, spread, n, g, at_once)
                : take_series<false>(w, m, spread, n, g, at_once);
  return true;
}

template <class T>
void ClosedForm::catch_up_rows(const StaleRows<T>& stale, int64_t first,
                               std::vector<size_t>& left) const {
  with_constant_dim(stale.dim, [&]<int64_t kDim>() {
    for (size_t i = 0; i < stale.rows.size(); ++i) {
      const int64_t at = stale.rows[i].row * stale.row_step;
      const int64_t from = stale.rows[i].steps - first;
      const double keeps = kept(from, size());
      if (!std::isfinite(keeps) || keeps == 0 ||
          !divide_by_series<kDim>(stale.values + at, stale.slots[formula_.m] + at,
                                  stale.slots[formula_.spread] + at, stale.dim, from, keeps)) {
        left.push_back(i);
      }
    }
  });
}

// Applies single steps to at most kPiece elements until the terms have vanished; later steps only
// decay the weights.
template <class T>
void ClosedForm::divide_step_by_step(T* w, T* const* slots, int64_t n, int64_t from,
                                     int64_t to) const {
  std::array<double, kPiece> weight, m, spread;
  for (int64_t i = 0; i < n; ++i) {
    weight[i] = w[i];
    m[i] = slots[0][i];
    spread[i] = root_of(formula_, slots[1][i]);
  }
  const double shrinks = 1 / growth_;
  const double smallest = smallest_root<T>();
  const double largest = *std::max_element(spread.begin(), spread.begin() + n);
  const double most_growth = formula_.epsilon > 0 ? largest / formula_.epsilon + 1
                                                  : std::numeric_limits<double>::infinity();
  double left = 1, grown = 1;  // remaining share of m; upper bound of the growth of 1 / spread
  int64_t at = from;
  for (; at < to && left * std::min(grown, most_growth) > kVanished; ++at) {
    const double keeps = 1 - decays_by_step_[at];
    const double rate = steps_[at].pace.rate;
    const double epsilon = formula_.epsilon * steps_[at].pace.scale;
    for (int64_t i = 0; i < n; ++i) {
      m[i] *= ratio_;
      spread[i] *= shrinks;
      weight[i] = keeps * weight[i] - rate * m[i] / std::max(spread[i] + epsilon, smallest);
    }
    left *= ratio_;
    grown *= growth_;
  }
  const double keeps = kept(at, to);
  for (int64_t i = 0; i < n; ++i) w[i] = static_cast<T>(keeps * weight[i]);
}

template <class T>
void ClosedForm::sign(T* w, T* const* slots, int64_t n, int64_t from, int64_t to) const {
  const double keeps = kept(from, to);
  const double moved = signs_[to] - keeps * signs_[from];
  const T* m = slots[formula_.m];
  for (int64_t i = 0; i < n; ++i) {
    const double towards = m[i] > 0 ? moved : m[i] < 0 ? -moved : moved * m[i];
    w[i] = static_cast<T>(keeps * w[i] - towards);
  }
}

template <class T>
void ClosedForm::shrink(T* const* slots, int64_t n, int64_t steps) const {
  for (size_t k = 0; k < formula_.shrinking.size(); ++k) {
    const int slot = formula_.shrinking[k].slot;
    const double power = left_of(k, steps);
    T* s = slots[slot];
    if (formula_.signs_stay && slot == formula_.m) {
      const T least = std::numeric_limits<T>::denorm_min();
      for (int64_t i = 0; i < n; ++i) {
        const T x = static_cast<T>(power * s[i]);
        s[i] = x == 0 && s[i] != 0 ? std::copysign(least, s[i]) : x;
      }
    } else {
      for (int64_t i = 0; i < n; ++i) s[i] = static_cast<T>(power * s[i]);
    }
  }
}

template bool ClosedForm::catch_up(float*, float* const*, int64_t, int64_t, int64_t) const;
template void ClosedForm::catch_up_rows(const StaleRows<float>&, int64_t,
                                        std::vector<size_t>&) const;
template void ClosedForm::catch_up_rows(const StaleRows<double>&, int64_t,
                                        std::vector<size_t>&) const;
template bool ClosedForm::catch_up(double*, double* const*, int64_t, int64_t, int64_t) const;

}  // namespace keel::kernels
