#include "layers/metrics/auc.h"

#include <algorithm>
#include <cmath>

namespace keel {
namespace {

// Rounding of a model's last layer may leave [0, 1] by this much.
constexpr float kSlack = 1e-5f;

AUCMetricOptions checked(AUCMetricOptions options) {
  if (options.multi_label || options.label_weights) {
    throw NotImplementedError("AUC: multi_label and label_weights are not offered");
  }
  if (options.curve != "ROC" && options.curve != "PR") {
    throw ValueError("AUC: curve must be 'ROC' or 'PR', received '", options.curve, "'");
  }
  const std::string& method = options.summation_method;
  if (method != "interpolation" && method != "minoring" && method != "majoring") {
    throw ValueError(
        "AUC: summation_method must be 'interpolation', 'minoring' or 'majoring', received '",
        method, "'");
  }
  if (options.thresholds) {
    for (const double t : *options.thresholds) {
      if (!(t > 0 && t < 1)) throw ValueError("AUC: thresholds must be in (0, 1), received ", t);
    }
    std::ranges::sort(*options.thresholds);
    options.num_thresholds = static_cast<int64_t>(options.thresholds->size()) + 2;
  }
  if (options.num_thresholds < 2) {
    throw ValueError("AUC: num_thresholds must be at least 2, received ", options.num_thresholds);
  }
  return options;
}

std::vector<float> all_thresholds(const AUCMetricOptions& options) {
  if (!options.thresholds) return {};
  std::vector<float> out = {-1e-7f};
  for (const double t : *options.thresholds) out.push_back(static_cast<float>(t));
  out.push_back(1 + 1e-7f);
  return out;
}

double ratio(double a, double b) { return b == 0 ? 0 : a / b; }

// One piece of the precision-recall curve between two thresholds, counts falling from `high` to
// `low`: true positives grow linearly with all positives there (Davis and Goadrich, 2006).
double precision_recall_piece(double tp_high, double tp_low, double fp_high, double fp_low,
                              double positives) {
  const double all_high = tp_high + fp_high, all_low = tp_low + fp_low;
  const double slope = ratio(tp_high - tp_low, std::max(all_high - all_low, 0.0));
  const double intercept = tp_low - slope * all_low;
  const double growth = all_high > 0 && all_low > 0 ? all_high / all_low : 1;
  return ratio(slope * (tp_high - tp_low + intercept * std::log(growth)), positives);
}

}  // namespace

AUCMetric::AUCMetric(Options options)
    : Metric(kClassName, options, 2 * checked(options).num_thresholds),
      options_(checked(std::move(options))),
      thresholds_(all_thresholds(options_)),
      buckets_(options_.num_thresholds) {}

int64_t AUCMetric::bucket(float prediction) const {
  if (thresholds_.empty()) {
    const auto step = static_cast<float>(buckets_ - 1);
    return std::max<int64_t>(static_cast<int64_t>(std::ceil(prediction * step)) - 1, 0);
  }
  const auto above = std::ranges::lower_bound(thresholds_, prediction);
  return std::max<int64_t>(above - thresholds_.begin() - 1, 0);
}

void AUCMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const auto label = batch.y_true.data<float>();
  const auto prediction = batch.y_pred.data<float>();
  const auto weights = batch.weights_of(batch.y_pred.size());
  for (size_t i = 0; i < prediction.size(); ++i) {
    float p = prediction[i];
    if (options_.from_logits) p = 1 / (1 + std::exp(-p));
    if (!(p >= -kSlack && p <= 1 + kSlack)) {
      throw ValueError(name(), ": predictions must be in [0, 1] (see from_logits), received ", p);
    }
    const int64_t b = bucket(std::clamp(p, 0.0f, 1.0f));
    const double weight = weights[static_cast<int64_t>(i)];
    state[b] += weight * label[i];
    state[buckets_ + b] += weight * (1 - label[i]);
  }
}

double AUCMetric::compute(std::span<const double> state) const {
  const auto n = static_cast<size_t>(buckets_);
  // Counts of what lies above each threshold.
  std::vector<double> tp(n), fp(n);
  double positives = 0, negatives = 0;
  for (size_t i = n; i-- > 0;) {
    tp[i] = positives += state[i];
    fp[i] = negatives += state[n + i];
  }
  const bool roc = options_.curve == "ROC";
  const bool interpolate = options_.summation_method == "interpolation";
  double area = 0;
  for (size_t i = 0; i + 1 < n; ++i) {
    if (!roc && interpolate) {
      area += precision_recall_piece(tp[i], tp[i + 1], fp[i], fp[i + 1], positives);
      continue;
    }
    const auto x = [&](size_t k) {
      return roc ? ratio(fp[k], negatives) : ratio(tp[k], positives);
    };
    const auto y = [&](size_t k) {
      return roc ? ratio(tp[k], positives) : ratio(tp[k], tp[k] + fp[k]);
    };
    const double a = y(i), b = y(i + 1);
    const double height = interpolate                               ? (a + b) / 2
                          : options_.summation_method == "minoring" ? std::min(a, b)
                                                                    : std::max(a, b);
    area += (x(i) - x(i + 1)) * height;
  }
  return area;
}

}  // namespace keel
