#include "layers/metrics/confusion.h"

namespace keel {
namespace {

ThresholdMetricOptions checked(const char* who, const char* name, ThresholdMetricOptions options) {
  if (options.name.empty()) options.name = name;
  if (options.top_k) throw NotImplementedError(who, ": top_k is not offered");
  const double threshold = options.thresholds.value_or(0.5);
  if (!(threshold >= 0 && threshold <= 1)) {
    throw ValueError(who, ": thresholds must be in [0, 1], received ", threshold);
  }
  return options;
}

}  // namespace

ThresholdMetric::ThresholdMetric(const char* class_name, const char* name, Other other,
                                 Options options)
    : Metric(class_name, checked(class_name, name, options), 2),
      other_(other),
      options_(checked(class_name, name, std::move(options))) {}

void ThresholdMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const int64_t columns = batch.y_pred.dim(-1);
  if (options_.class_id && (*options_.class_id < 0 || *options_.class_id >= columns)) {
    throw ValueError(name(), ": class_id ", *options_.class_id, " of predictions of shape ",
                     batch.y_pred.shape());
  }
  const auto label = batch.y_true.data<float>();
  const auto prediction = batch.y_pred.data<float>();
  const auto threshold = static_cast<float>(options_.thresholds.value_or(0.5));
  const auto weights = batch.weights_of(batch.y_pred.size());
  const int64_t step = options_.class_id ? columns : 1;
  for (int64_t i = options_.class_id.value_or(0); i < batch.y_pred.size(); i += step) {
    const bool is_positive = label[i] != 0;
    const bool says_positive = prediction[i] > threshold;
    if (is_positive && says_positive) {
      state[0] += weights[i];
    } else if (other_ == Other::kPrediction ? says_positive : is_positive) {
      state[1] += weights[i];
    }
  }
}

double ThresholdMetric::compute(std::span<const double> state) const {
  const double all = state[0] + state[1];
  return all == 0 ? 0 : state[0] / all;
}

}  // namespace keel
