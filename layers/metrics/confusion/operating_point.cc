#include <keel/layers/metrics/confusion/operating_point.h>

#include <algorithm>

#include <keel/framework/config/registry.h>
#include <keel/layers/metrics/confusion/internal/threshold_histogram.h>

namespace keel {
namespace {

std::vector<double> thresholds_of(const char* caller, int64_t num_thresholds) {
  if (num_thresholds < 1) {
    throw ValueError(caller, ": num_thresholds must be positive, received ", num_thresholds);
  }
  if (num_thresholds == 1) return {0.5};
  std::vector<double> out;
  for (int64_t i = 0; i < num_thresholds; ++i) {
    out.push_back(static_cast<double>(i) / static_cast<double>(num_thresholds - 1));
  }
  return out;
}

double rate_at(DecisionRate rate, const ConfusionCounts& c, size_t i) {
  switch (rate) {
    case DecisionRate::kPrecision:
      return ratio(c.tp[i], c.tp[i] + c.fp[i]);
    case DecisionRate::kRecall:
      return ratio(c.tp[i], c.tp[i] + c.fn[i]);
    default:
      return ratio(c.tn[i], c.tn[i] + c.fp[i]);
  }
}

}  // namespace

OperatingPointMetric::OperatingPointMetric(const char* class_name, const std::string& name,
                                           int64_t num_thresholds, std::optional<int64_t> class_id,
                                           std::pair<const char*, double> minimum,
                                           DecisionRate constrained, DecisionRate dependent)
    : ConfusionMetric(class_name, name, thresholds_of(class_name, num_thresholds),
                      {.class_id = class_id}),
      minimum_(static_cast<float>(minimum.second)),
      constrained_(constrained),
      dependent_(dependent) {
  if (!(minimum.second >= 0 && minimum.second <= 1)) {
    throw ValueError(class_name, ": ", minimum.first, " must be in [0, 1], received ",
                     minimum.second);
  }
}

Tensor OperatingPointMetric::compute(std::span<const double> state) const {
  const ConfusionCounts c = counts(state);
  double best = 0;
  for (size_t i = 0; i < c.tp.size(); ++i) {
    // The comparison is in float32, where 3 / 5 is at least 0.6.
    const auto constrained = static_cast<float>(rate_at(constrained_, c, i));
    if (constrained >= minimum_) best = std::max(best, rate_at(dependent_, c, i));
  }
  return Tensor::scalar(best);
}

KEEL_REGISTER_ALL(Metric, operating_point_metrics) {
  registry.add_all<PrecisionAtRecallMetric, RecallAtPrecisionMetric, SensitivityAtSpecificityMetric,
                   SpecificityAtSensitivityMetric>({.package = "keras"});
}

}  // namespace keel
