#include <keel/layers/metrics/confusion/internal/threshold_histogram.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;

std::vector<double> evenly_spaced(int64_t n) {
  std::vector<double> out;
  for (int64_t i = 0; i < n; ++i) {
    out.push_back(n == 1 ? 0 : static_cast<double>(i) / static_cast<double>(n - 1));
  }
  return out;
}

bool are_evenly_spaced(std::span<const double> values) {
  if (values.size() < 3) return false;
  const std::vector<double> want = evenly_spaced(std::ssize(values));
  for (size_t i = 0; i < want.size(); ++i) {
    if (!(std::abs(values[i] - want[i]) <= kEpsilon + 1e-5 * want[i])) return false;
  }
  return true;
}

}  // namespace

ThresholdHistogram::ThresholdHistogram(std::vector<double> thresholds)
    : position_(thresholds.size()), even_(are_evenly_spaced(thresholds)) {
  std::iota(position_.begin(), position_.end(), 0);
  std::ranges::stable_sort(position_, {}, [&](int64_t i) { return thresholds[i]; });
  for (const int64_t i : position_) sorted_.push_back(static_cast<float>(thresholds[i]));
}

ThresholdHistogram ThresholdHistogram::around_unit_interval(int64_t n) {
  const std::vector<double> all = evenly_spaced(n);
  ThresholdHistogram out =
      around_unit_interval(std::vector<double>(all.begin() + 1, all.end() - 1));
  out.even_ = true;
  return out;
}

ThresholdHistogram ThresholdHistogram::around_unit_interval(const std::vector<double>& inner) {
  std::vector<double> all = {0};
  all.insert(all.end(), inner.begin(), inner.end());
  all.push_back(1);
  const bool even = are_evenly_spaced(all);
  all.front() = -kEpsilon;
  all.back() = 1 + kEpsilon;
  ThresholdHistogram out(all);
  out.even_ = even;
  out.ends_outside_ = true;
  return out;
}

int64_t ThresholdHistogram::thresholds_below(float prediction) const {
  if (!even_) return std::ranges::lower_bound(sorted_, prediction) - sorted_.begin();
  // The computation is in float32, like in Keras: it decides the bucket of a prediction that equals
  // a threshold.
  const float p = std::clamp(prediction, 0.0f, 1.0f);
  const auto below = static_cast<int64_t>(std::ceil(p * static_cast<float>(thresholds() - 1)));
  return ends_outside_ ? std::max<int64_t>(below, 1) : below;
}

// The first half of the state holds the positive labels, and the second half the negative ones.
void ThresholdHistogram::add(std::span<double> state, float prediction, bool positive,
                             double weight) const {
  state[thresholds_below(prediction) + (positive ? 0 : thresholds() + 1)] += weight;
}

ConfusionCounts ThresholdHistogram::counts(std::span<const double> state) const {
  const auto n = static_cast<size_t>(thresholds());
  ConfusionCounts out{std::vector<double>(n), std::vector<double>(n), std::vector<double>(n),
                      std::vector<double>(n)};
  double tp = 0, fp = 0;
  for (size_t i = n; i-- > 0;) {
    out.tp[position_[i]] = tp += state[i + 1];
    out.fp[position_[i]] = fp += state[n + 1 + i + 1];
  }
  double fn = 0, tn = 0;
  for (size_t i = 0; i < n; ++i) {
    out.fn[position_[i]] = fn += state[i];
    out.tn[position_[i]] = tn += state[n + 1 + i];
  }
  return out;
}

}  // namespace keel
