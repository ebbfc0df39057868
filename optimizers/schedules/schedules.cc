#include <keel/optimizers/schedules/schedules.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include <keel/framework/internal/math.h>

namespace keel::optimizers::schedules {
namespace {

void check_positive(const char* caller, const char* name, int64_t steps) {
  if (steps <= 0) throw ValueError(caller, ": ", name, " must be positive, received ", steps);
}

void check_at_least(double least, const char* caller, const char* name, double value) {
  if (!(value >= least)) {
    throw ValueError(caller, ": ", name, " must be at least ", least, ", received ", value);
  }
}

double periods(int64_t step, int64_t decay_steps, bool staircase) {
  const double exact = static_cast<double>(step) / static_cast<double>(decay_steps);
  return staircase ? std::floor(exact) : exact;
}

// Returns a rate relative to the initial one: (1 - alpha) times half a cosine wave, which descends
// from `height` to 0 as `fraction` goes from 0 to 1, plus alpha.
double cosine(double fraction, double height, double alpha) {
  return (1 - alpha) * 0.5 * height * (1 + math::cos(std::numbers::pi * fraction)) + alpha;
}

}  // namespace

void ExponentialDecayOptions::check(const char* caller) const {
  check_positive(caller, "decay_steps", decay_steps);
  if (!(decay_rate > 0)) {
    throw ValueError(caller, ": decay_rate must be positive, received ", decay_rate);
  }
}

double ExponentialDecayOptions::rate(int64_t step) const {
  return initial_learning_rate * math::pow(decay_rate, periods(step, decay_steps, staircase));
}

void PiecewiseConstantDecayOptions::check(const char* caller) const {
  if (values.size() != boundaries.size() + 1) {
    throw ValueError(caller, ": values must have one more element than boundaries, received ",
                     values.size(), " values and ", boundaries.size(), " boundaries");
  }
  if (std::ranges::adjacent_find(boundaries, std::greater_equal<>()) != boundaries.end()) {
    throw ValueError(caller, ": boundaries must be strictly ascending");
  }
}

double PiecewiseConstantDecayOptions::rate(int64_t step) const {
  const auto found = std::ranges::lower_bound(boundaries, step);
  return values[found - boundaries.begin()];
}

void PolynomialDecayOptions::check(const char* caller) const {
  check_positive(caller, "decay_steps", decay_steps);
  check_at_least(0, caller, "power", power);
}

double PolynomialDecayOptions::rate(int64_t step) const {
  double done = periods(step, decay_steps, false);
  if (cycle) {
    done /= std::max(1.0, std::ceil(done));
  } else {
    done = std::min(done, 1.0);
  }
  return (initial_learning_rate - end_learning_rate) * math::pow(1 - done, power) +
         end_learning_rate;
}

void InverseTimeDecayOptions::check(const char* caller) const {
  check_positive(caller, "decay_steps", decay_steps);
  check_at_least(0, caller, "decay_rate", decay_rate);
}

double InverseTimeDecayOptions::rate(int64_t step) const {
  return initial_learning_rate / (1 + decay_rate * periods(step, decay_steps, staircase));
}

void CosineDecayOptions::check(const char* caller) const {
  check_positive(caller, "decay_steps", decay_steps);
  if (warmup_steps < 0) {
    throw ValueError(caller, ": warmup_steps must not be negative, received ", warmup_steps);
  }
}

double CosineDecayOptions::rate(int64_t step) const {
  double highest = initial_learning_rate;
  if (warmup_target) {
    highest = *warmup_target;
    if (step < warmup_steps) {
      return (highest - initial_learning_rate) * periods(step, warmup_steps, false) +
             initial_learning_rate;
    }
    step -= warmup_steps;
  }
  return highest * cosine(std::min(1.0, periods(step, decay_steps, false)), 1, alpha);
}

void CosineDecayRestartsOptions::check(const char* caller) const {
  check_positive(caller, "first_decay_steps", first_decay_steps);
  check_at_least(1, caller, "t_mul", t_mul);
  check_at_least(0, caller, "m_mul", m_mul);
}

double CosineDecayRestartsOptions::rate(int64_t step) const {
  const double done = periods(step, first_decay_steps, false);
  double period = std::floor(done);
  double fraction = done - period;
  if (t_mul > 1) {
    const auto start = [&](double i) { return (math::pow(t_mul, i) - 1) / (t_mul - 1); };
    period = std::floor(math::log(1 + done * (t_mul - 1)) / math::log(t_mul));
    // At a restart, rounding of the logarithms may give a period that is off by one.
    if (start(period + 1) <= done) ++period;
    if (start(period) > done) --period;
    fraction = (done - start(period)) / math::pow(t_mul, period);
  }
  return initial_learning_rate * cosine(fraction, math::pow(m_mul, period), alpha);
}

}  // namespace keel::optimizers::schedules
