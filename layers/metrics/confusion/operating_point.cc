#include <keel/layers/metrics/confusion/operating_point.h>

#include <algorithm>

#include <keel/framework/config/registry.h>

namespace keel {

ThresholdHistogram OperatingPointMetric::histogram_of(const char* caller, int64_t num_thresholds,
                                                      const char* what, double value) {
  if (num_thresholds < 1) {
    throw ValueError(caller, ": num_thresholds must be positive, received ", num_thresholds);
  }
  if (!(value >= 0 && value <= 1)) {
    throw ValueError(caller, ": ", what, " must be in [0, 1], received ", value);
  }
  if (num_thresholds == 1) return ThresholdHistogram({0.5});
  std::vector<double> thresholds;
  for (int64_t i = 0; i < num_thresholds; ++i) {
    thresholds.push_back(static_cast<double>(i) / static_cast<double>(num_thresholds - 1));
  }
  return ThresholdHistogram(std::move(thresholds));
}

Tensor OperatingPointMetric::compute(std::span<const double> state) const {
  const ConfusionCounts c = counts(state);
  double best = 0;
  for (size_t i = 0; i < c.tp.size(); ++i) {
    const Rates at = rates(c.tp[i], c.fp[i], c.tn[i], c.fn[i]);
    // The comparison is in float32, where 3 / 5 is at least 0.6.
    if (static_cast<float>(at.constrained) >= value_) best = std::max(best, at.dependent);
  }
  return Tensor::scalar(best);
}

OperatingPointMetric::Rates SensitivityAtSpecificityMetric::rates(double tp, double fp, double tn,
                                                                  double fn) const {
  return {.constrained = ratio(tn, tn + fp), .dependent = ratio(tp, tp + fn)};
}

OperatingPointMetric::Rates SpecificityAtSensitivityMetric::rates(double tp, double fp, double tn,
                                                                  double fn) const {
  return {.constrained = ratio(tp, tp + fn), .dependent = ratio(tn, tn + fp)};
}

OperatingPointMetric::Rates PrecisionAtRecallMetric::rates(double tp, double fp, double,
                                                           double fn) const {
  return {.constrained = ratio(tp, tp + fn), .dependent = ratio(tp, tp + fp)};
}

OperatingPointMetric::Rates RecallAtPrecisionMetric::rates(double tp, double fp, double,
                                                           double fn) const {
  return {.constrained = ratio(tp, tp + fp), .dependent = ratio(tp, tp + fn)};
}

KEEL_REGISTER(Metric, PrecisionAtRecallMetric)
KEEL_REGISTER(Metric, RecallAtPrecisionMetric)
KEEL_REGISTER(Metric, SensitivityAtSpecificityMetric)
KEEL_REGISTER(Metric, SpecificityAtSensitivityMetric)

}  // namespace keel
