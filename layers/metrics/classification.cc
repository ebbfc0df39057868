#include <keel/layers/metrics/classification.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/config/registry.h>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;
// Indices of the sums of one class in the state.
enum Sum { kTruePositive, kFalsePositive, kFalseNegative, kSums };

FBetaScoreMetricOptions checked(const char* caller, FBetaScoreMetricOptions options) {
  if (options.average && *options.average != "micro" && *options.average != "macro" &&
      *options.average != "weighted") {
    throw ValueError(caller, ": average must be 'micro', 'macro' or 'weighted', received '",
                     *options.average, "'");
  }
  if (!(options.beta > 0))
    throw ValueError(caller, ": beta must be positive, received ", options.beta);
  if (options.threshold && !(*options.threshold > 0 && *options.threshold <= 1)) {
    throw ValueError(caller, ": threshold must be in (0, 1], received ", *options.threshold);
  }
  return options;
}

}  // namespace

FBetaScoreMetric::FBetaScoreMetric(const char* class_name, Options options)
    : Metric(class_name, options, kUnknown), options_(checked(class_name, std::move(options))) {}

int64_t FBetaScoreMetric::state_size_of(const MetricBatch& batch) const {
  if (batch.y_pred.rank() != 2) {
    throw ValueError(name(), ": predictions must be [batch, classes], received shape ",
                     batch.y_pred.shape());
  }
  return kSums * batch.y_pred.dim(1);
}

void FBetaScoreMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const int64_t classes = batch.y_pred.dim(1);
  const auto weights = batch.weights_of(batch.y_pred.size());
  for (int64_t begin = 0; begin < batch.y_pred.size(); begin += classes) {
    const auto prediction = batch.y_pred.data<float>().subspan(begin, classes);
    const auto label = batch.y_true.data<float>().subspan(begin, classes);
    const float greatest = std::ranges::max(prediction);
    for (int64_t c = 0; c < classes; ++c) {
      const float p = prediction[c];
      const bool positive = options_.threshold ? p > static_cast<float>(*options_.threshold)
                                               : p >= greatest && std::abs(p) > 1e-9f;
      const double weight = weights[begin + c];
      const double y = label[c];
      double* sums = &state[kSums * c];
      if (positive) {
        sums[kTruePositive] += weight * y;
        sums[kFalsePositive] += weight * (1 - y);
      } else {
        sums[kFalseNegative] += weight * y;
      }
    }
  }
}

Tensor FBetaScoreMetric::compute(std::span<const double> state) const {
  const double beta2 = options_.beta * options_.beta;
  const auto score = [&](const double* sums) {
    const double tp = sums[kTruePositive];
    const double precision = tp / (tp + sums[kFalsePositive] + kEpsilon);
    const double recall = tp / (tp + sums[kFalseNegative] + kEpsilon);
    return (1 + beta2) * precision * recall / (beta2 * precision + recall + kEpsilon);
  };
  std::vector<double> scores, labels;
  double all[kSums] = {}, score_sum = 0, label_sum = 0, weighted = 0;
  for (size_t at = 0; at < state.size(); at += kSums) {
    for (int i = 0; i < kSums; ++i) all[i] += state[at + i];
    scores.push_back(score(&state[at]));
    const double of_class = state[at + kTruePositive] + state[at + kFalseNegative];
    score_sum += scores.back();
    label_sum += of_class;
    weighted += of_class * scores.back();
  }
  if (!options_.average) return Tensor::from(scores, {static_cast<int64_t>(scores.size())});
  if (*options_.average == "micro") return Tensor::scalar(score(all));
  if (*options_.average == "weighted") return Tensor::scalar(weighted / (label_sum + kEpsilon));
  return Tensor::scalar(scores.empty() ? 0.0 : score_sum / static_cast<double>(scores.size()));
}

KEEL_REGISTER_ALL(Metric, classification_metrics) {
  registry.add_all<CategoricalHingeMetric, F1ScoreMetric, FBetaScoreMetric, HingeMetric,
                   SquaredHingeMetric>({.package = "keras"});
}

}  // namespace keel
