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

ExponentialDecaySchedule::ExponentialDecaySchedule(Options options) : options_(std::move(options)) {
  check_positive(kClassName, "decay_steps", options_.decay_steps);
  if (!(options_.decay_rate > 0)) {
    throw ValueError("ExponentialDecay: decay_rate must be positive, received ",
                     options_.decay_rate);
  }
}

double ExponentialDecaySchedule::operator()(int64_t step) const {
  const Options& o = options_;
  return o.initial_learning_rate *
         math::pow(o.decay_rate, periods(step, o.decay_steps, o.staircase));
}

PiecewiseConstantDecaySchedule::PiecewiseConstantDecaySchedule(Options options)
    : options_(std::move(options)) {
  const auto& [boundaries, values, name] = options_;
  if (values.size() != boundaries.size() + 1) {
    throw ValueError(
        "PiecewiseConstantDecay: values must have one more element than boundaries, received ",
        values.size(), " values and ", boundaries.size(), " boundaries");
  }
  if (std::ranges::adjacent_find(boundaries, std::greater_equal<>()) != boundaries.end()) {
    throw ValueError("PiecewiseConstantDecay: boundaries must be strictly ascending");
  }
}

double PiecewiseConstantDecaySchedule::operator()(int64_t step) const {
  const auto found = std::ranges::lower_bound(options_.boundaries, step);
  return options_.values[found - options_.boundaries.begin()];
}

PolynomialDecaySchedule::PolynomialDecaySchedule(Options options) : options_(std::move(options)) {
  check_positive(kClassName, "decay_steps", options_.decay_steps);
  check_at_least(0, kClassName, "power", options_.power);
}

double PolynomialDecaySchedule::operator()(int64_t step) const {
  const Options& o = options_;
  double done = periods(step, o.decay_steps, false);
  if (o.cycle) {
    done /= std::max(1.0, std::ceil(done));
  } else {
    done = std::min(done, 1.0);
  }
  return (o.initial_learning_rate - o.end_learning_rate) * math::pow(1 - done, o.power) +
         o.end_learning_rate;
}

InverseTimeDecaySchedule::InverseTimeDecaySchedule(Options options) : options_(std::move(options)) {
  check_positive(kClassName, "decay_steps", options_.decay_steps);
  check_at_least(0, kClassName, "decay_rate", options_.decay_rate);
}

double InverseTimeDecaySchedule::operator()(int64_t step) const {
  const Options& o = options_;
  return o.initial_learning_rate / (1 + o.decay_rate * periods(step, o.decay_steps, o.staircase));
}

CosineDecaySchedule::CosineDecaySchedule(Options options) : options_(std::move(options)) {
  check_positive(kClassName, "decay_steps", options_.decay_steps);
  if (options_.warmup_steps < 0) {
    throw ValueError("CosineDecay: warmup_steps must not be negative, received ",
                     options_.warmup_steps);
  }
}

double CosineDecaySchedule::operator()(int64_t step) const {
  const Options& o = options_;
  double highest = o.initial_learning_rate;
  if (o.warmup_target) {
    highest = *o.warmup_target;
    if (step < o.warmup_steps) {
      return (highest - o.initial_learning_rate) * periods(step, o.warmup_steps, false) +
             o.initial_learning_rate;
    }
    step -= o.warmup_steps;
  }
  return highest * cosine(std::min(1.0, periods(step, o.decay_steps, false)), 1, o.alpha);
}

CosineDecayRestartsSchedule::CosineDecayRestartsSchedule(Options options)
    : options_(std::move(options)) {
  check_positive(kClassName, "first_decay_steps", options_.first_decay_steps);
  check_at_least(1, kClassName, "t_mul", options_.t_mul);
  check_at_least(0, kClassName, "m_mul", options_.m_mul);
}

double CosineDecayRestartsSchedule::operator()(int64_t step) const {
  const Options& o = options_;
  const double done = periods(step, o.first_decay_steps, false);
  double period = std::floor(done);
  double fraction = done - period;
  if (o.t_mul > 1) {
    const auto start = [&](double i) { return (math::pow(o.t_mul, i) - 1) / (o.t_mul - 1); };
    period = std::floor(math::log(1 + done * (o.t_mul - 1)) / math::log(o.t_mul));
    // At a restart, rounding of the logarithms may give a period that is off by one.
    if (start(period + 1) <= done) ++period;
    if (start(period) > done) --period;
    fraction = (done - start(period)) / math::pow(o.t_mul, period);
  }
  return o.initial_learning_rate * cosine(fraction, math::pow(o.m_mul, period), o.alpha);
}

}  // namespace keel::optimizers::schedules
