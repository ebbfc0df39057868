#include <keel/layers/visualization/internal/plot_axis.h>

#include <absl/strings/str_format.h>
#include <algorithm>
#include <cmath>

namespace keel {
namespace {

// Returns the smallest of 1, 2 or 5 times a power of ten that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10.0, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  }
  return 10 * power;
}

// Returns the shortest label that distinguishes multiples of `step`.
std::string label_of(double value, double step) {
  const double largest = std::max(std::abs(value), step);
  if (largest >= 1e5 || step < 1e-4) return absl::StrFormat("%.3g", value);
  const int decimals = std::max(0, static_cast<int>(-std::floor(std::log10(step) + 1e-9)));
  return absl::StrFormat("%.*f", decimals, value);
}

}  // namespace

PlotAxis::PlotAxis(Scale scale, double low, double high, int ticks)
    : scale_(scale), low_(low), high_(high) {
  if (scale_ == Scale::kLog) {
    low_ = std::log10(low);
    high_ = std::log10(high);
  }
  double margin = 0.05 * (high_ - low_);
  if (margin == 0) margin = low_ == 0 || scale_ == Scale::kLog ? 0.5 : 0.05 * std::abs(low_);
  if (scale_ == Scale::kInteger) margin = high_ > low_ ? 0 : 0.5;
  low_ -= margin;
  high_ += margin;
  scale_ == Scale::kLog ? add_log_ticks(ticks) : add_linear_ticks(ticks);
}

double PlotAxis::position(double value) const {
  return ((scale_ == Scale::kLog ? std::log10(value) : value) - low_) / (high_ - low_);
}

void PlotAxis::add_linear_ticks(int wanted) {
  double step = round_step((high_ - low_) / wanted);
  if (scale_ == Scale::kInteger) step = std::max(1.0, step);
  // Computed from integers, so that rounding errors do not accumulate and skip a tick.
  const auto first = static_cast<int64_t>(std::ceil(low_ / step - 1e-9));
  const auto last = static_cast<int64_t>(std::floor(high_ / step + 1e-9));
  for (int64_t k = first; k <= last; ++k) {
    const double value = static_cast<double>(k) * step;
    ticks_.push_back({.value = value, .label = label_of(value, step)});
  }
}

void PlotAxis::add_log_ticks(int wanted) {
  const int first = static_cast<int>(std::floor(low_)), last = static_cast<int>(std::ceil(high_));
  const int every = std::max(1, (last - first) / wanted);
  // If there are few decades, also uses values between the powers of ten.
  for (const int between : {1, 2, 9}) {
    ticks_.clear();
    for (int k = first; k <= last; ++k) {
      for (int factor = 1; factor < 10 && k % every == 0; ++factor) {
        const bool kept =
            factor == 1 || between == 9 || (between == 2 && (factor == 2 || factor == 5));
        const double value = factor * std::pow(10.0, k);
        const double place = position(value);
        if (!kept || place < 0 || place > 1) continue;
        ticks_.push_back({.value = value, .label = label_of(value, value)});
      }
    }
    if (ticks_.size() >= 3) return;
  }
}

}  // namespace keel
