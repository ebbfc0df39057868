#include <keel/layers/metrics/r2_score.h>

#include <cmath>

#include <keel/framework/config/registry.h>

namespace keel {
namespace {

// Indices of the sums of one column in the state. The last element of the state is the number of
// samples.
enum Sum { kLabel, kSquaredLabel, kSquaredError, kWeight, kSums };

}  // namespace

R2ScoreMetric::R2ScoreMetric(Options options)
    : Metric(kClassName, options, kUnknown), options_(std::move(options)) {
  const auto& aggregation = options_.class_aggregation;
  if (aggregation && *aggregation != "uniform_average" &&
      *aggregation != "variance_weighted_average") {
    throw ValueError(
        "R2Score: class_aggregation must be 'uniform_average' or 'variance_weighted_average', "
        "received '",
        *aggregation, "'");
  }
  if (options_.num_regressors < 0) {
    throw ValueError("R2Score: num_regressors must not be negative, received ",
                     options_.num_regressors);
  }
}

int64_t R2ScoreMetric::state_size_of(const MetricBatch& batch) const {
  if (batch.y_pred.rank() != 2) {
    throw ValueError(name(), ": predictions must be [batch, columns], received shape ",
                     batch.y_pred.shape());
  }
  return kSums * batch.y_pred.dim(1) + 1;
}

void R2ScoreMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const int64_t columns = batch.y_pred.dim(1);
  const auto label = batch.y_true.data<float>();
  const auto prediction = batch.y_pred.data<float>();
  const auto weights = batch.weights_of(batch.y_pred.size());
  for (int64_t i = 0; i < batch.y_pred.size(); ++i) {
    double* sums = &state[kSums * (i % columns)];
    const double y = label[i], error = y - prediction[i], weight = weights[i];
    sums[kLabel] += weight * y;
    sums[kSquaredLabel] += weight * y * y;
    sums[kSquaredError] += weight * error * error;
    sums[kWeight] += weight;
  }
  state.back() += static_cast<double>(batch.y_pred.size());
}

double R2ScoreMetric::adjusted(double score, double samples) const {
  const auto regressors = static_cast<double>(options_.num_regressors);
  if (regressors == 0 || regressors >= samples - 1) return score;
  return 1 - (1 - score) * (samples - 1) / (samples - regressors - 1);
}

Tensor R2ScoreMetric::compute(std::span<const double> state) const {
  const double samples = state.empty() ? 0 : state.back();
  if (samples == 0) return Tensor::scalar(0.0);
  std::vector<double> scores;
  double sum = 0, weighted = 0, total_sum = 0;
  for (size_t at = 0; at + kSums < state.size(); at += kSums) {
    const double total =
        state[at + kSquaredLabel] - state[at + kLabel] * state[at + kLabel] / state[at + kWeight];
    const double score = 1 - state[at + kSquaredError] / total;
    scores.push_back(std::isinf(score) ? 0 : score);
    sum += scores.back();
    weighted += total * scores.back();
    total_sum += total;
  }
  if (!options_.class_aggregation) {
    for (double& score : scores) score = adjusted(score, samples);
    return Tensor::from(scores, {static_cast<int64_t>(scores.size())});
  }
  const double score = *options_.class_aggregation == "uniform_average"
                           ? sum / static_cast<double>(scores.size())
                           : weighted / total_sum;
  return Tensor::scalar(adjusted(score, samples));
}

KEEL_REGISTER(Metric, R2ScoreMetric)

}  // namespace keel
