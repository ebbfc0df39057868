#include <keel/layers/metrics/probabilistic.h>

#include <algorithm>
#include <cmath>

#include <keel/framework/config/registry.h>
#include <keel/framework/internal/math.h>

namespace keel {
namespace {

// Indices of the weighted sums in the state.
enum EntropySum { kLogLoss, kEntropyLabel, kEntropyWeight, kEntropySums };
enum CalibrationSum { kPrediction, kLabel, kCalibrationSums };

// Returns the log loss of label y and probability p, both of which may be 0 or 1.
double log_loss(double y, double p) {
  const auto term = [](double part, double of) { return part == 0 ? 0 : -part * math::log(of); };
  return term(y, p) + term(1 - y, 1 - p);
}

// Returns the log loss of label y and log odds x, without overflow.
double log_loss_of_logit(double y, double x) { return math::softplus(x) - x * y; }

}  // namespace

NormalizedEntropyMetric::NormalizedEntropyMetric(Options options)
    : Metric(kClassName, options, kEntropySums),
      options_{name(), options.dtype, options.from_logits} {}

void NormalizedEntropyMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  constexpr double kEpsilon = 1e-7;
  const auto label = batch.y_true.data<float>();
  const auto prediction = batch.y_pred.data<float>();
  const auto weights = batch.weights_of(batch.y_pred.size());
  for (int64_t i = 0; i < batch.y_pred.size(); ++i) {
    const double y = label[i], p = prediction[i], weight = weights[i];
    const double loss = options_.from_logits ? log_loss_of_logit(y, p)
                                             : log_loss(y, std::clamp(p, kEpsilon, 1 - kEpsilon));
    state[kLogLoss] += weight * loss;
    state[kEntropyLabel] += weight * y;
    state[kEntropyWeight] += weight;
  }
}

Tensor NormalizedEntropyMetric::compute(std::span<const double> state) const {
  const double weight = state[kEntropyWeight];
  if (weight == 0) return Tensor::scalar(0.0);
  const double mean_label = state[kEntropyLabel] / weight;
  const double of_mean = log_loss(mean_label, mean_label);
  return Tensor::scalar(of_mean > 0 ? state[kLogLoss] / weight / of_mean : 0.0);
}

CalibrationMetric::CalibrationMetric(Options options)
    : Metric(kClassName, options, kCalibrationSums),
      options_{name(), options.dtype, options.from_logits} {}

void CalibrationMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const auto label = batch.y_true.data<float>();
  const auto prediction = batch.y_pred.data<float>();
  const auto weights = batch.weights_of(batch.y_pred.size());
  for (int64_t i = 0; i < batch.y_pred.size(); ++i) {
    const double p = prediction[i];
    state[kPrediction] += weights[i] * (options_.from_logits ? math::sigmoid(p) : p);
    state[kLabel] += weights[i] * label[i];
  }
}

Tensor CalibrationMetric::compute(std::span<const double> state) const {
  return Tensor::scalar(state[kLabel] > 0 ? state[kPrediction] / state[kLabel] : 0.0);
}

KEEL_REGISTER_ALL(Metric, probabilistic_metrics) {
  registry.add_all<BinaryCrossentropyMetric, CategoricalCrossentropyMetric, KLDivergenceMetric,
                   PoissonMetric, SparseCategoricalCrossentropyMetric>({.package = "keras"});
  registry.add_all<AutoCrossentropyMetric, CalibrationMetric, NormalizedEntropyMetric>(
      {.package = "keel"});
}

}  // namespace keel
