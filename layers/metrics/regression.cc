#include <keel/layers/metrics/regression.h>

#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>

namespace keel {
namespace {

constexpr double kEpsilon = 1e-7;

Tensor centered(const Tensor& x, int axis) { return x - ops::mean(x, {axis}, true); }

Tensor standardized(const Tensor& x, int axis) {
  const Tensor shifted = centered(x, axis);
  return shifted / ops::sqrt(ops::mean(ops::square(shifted), {axis}, true));
}

// Indices of the sums of one column in the state. The last element of the state is the number of
// samples.
enum Sum { kLabel, kSquaredLabel, kSquaredError, kWeight, kSums };

}  // namespace

namespace metrics {

Tensor pearson_correlation(const Tensor& y_true, const Tensor& y_pred, int axis) {
  return ops::mean(standardized(y_true, axis) * standardized(y_pred, axis), {axis});
}

Tensor concordance_correlation(const Tensor& y_true, const Tensor& y_pred, int axis) {
  const Tensor y = centered(y_true, axis);
  const Tensor p = centered(y_pred, axis);
  const Tensor distance = ops::mean(y_true - y_pred, {axis});
  const Tensor spread =
      ops::mean(ops::square(y), {axis}) + ops::mean(ops::square(p), {axis}) + ops::square(distance);
  return ops::scale(ops::mean(y * p, {axis}), 2) / ops::shift(spread, kEpsilon);
}

}  // namespace metrics

double RootMeanSquaredErrorMetricOptions::result(double mean) const { return std::sqrt(mean); }

Tensor CosineSimilarityMetricOptions::per_sample(const Tensor& y_true, const Tensor& y_pred) const {
  return -losses::cosine_similarity(y_true, y_pred, axis);
}

Config CosineSimilarityMetricOptions::get_config() const {
  Config out = to_config(*this);
  if (axis == -1) out.erase("axis");  // Keras does not write the default
  return out;
}

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

KEEL_REGISTER_ALL(Metric, regression_metrics) {
  registry.add_all<ConcordanceCorrelationMetric, CosineSimilarityMetric, LogCoshErrorMetric,
                   MeanAbsoluteErrorMetric, MeanAbsolutePercentageErrorMetric,
                   MeanSquaredErrorMetric, MeanSquaredLogarithmicErrorMetric,
                   PearsonCorrelationMetric, R2ScoreMetric, RootMeanSquaredErrorMetric>(
      {.package = "keras"});
}

}  // namespace keel
