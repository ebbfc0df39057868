#include <keel/layers/metrics/regression.h>

#include <cmath>

#include <keel/autodiff/ops.h>
#include <keel/framework/config/registry.h>
#include <keel/layers/losses/regression.h>
#include <keel/layers/losses/similarity.h>

namespace keel {

Tensor MeanSquaredErrorMetric::values(const MetricBatch& batch) const {
  return losses::mean_squared_error(batch.y_true, batch.y_pred);
}

Tensor RootMeanSquaredErrorMetric::values(const MetricBatch& batch) const {
  return losses::mean_squared_error(batch.y_true, batch.y_pred);
}

Tensor MeanAbsoluteErrorMetric::values(const MetricBatch& batch) const {
  return losses::mean_absolute_error(batch.y_true, batch.y_pred);
}

Tensor MeanAbsolutePercentageErrorMetric::values(const MetricBatch& batch) const {
  return losses::mean_absolute_percentage_error(batch.y_true, batch.y_pred);
}

Tensor MeanSquaredLogarithmicErrorMetric::values(const MetricBatch& batch) const {
  return losses::mean_squared_logarithmic_error(batch.y_true, batch.y_pred);
}

Tensor LogCoshErrorMetric::values(const MetricBatch& batch) const {
  return losses::log_cosh(batch.y_true, batch.y_pred);
}

Tensor CosineSimilarityMetric::values(const MetricBatch& batch) const {
  return -losses::cosine_similarity(batch.y_true, batch.y_pred, options_.axis);
}

Tensor RootMeanSquaredErrorMetric::compute(std::span<const double> state) const {
  return Tensor::scalar(std::sqrt(MeanOfSamples::compute(state).item<double>()));
}

Config CosineSimilarityMetric::get_config() const {
  Config out = to_config(options_);
  if (options_.axis == -1) out.erase("axis");  // Keras does not write the default
  return out;
}

KEEL_REGISTER(Metric, CosineSimilarityMetric)
KEEL_REGISTER(Metric, LogCoshErrorMetric)
KEEL_REGISTER(Metric, MeanAbsoluteErrorMetric)
KEEL_REGISTER(Metric, MeanAbsolutePercentageErrorMetric)
KEEL_REGISTER(Metric, MeanSquaredErrorMetric)
KEEL_REGISTER(Metric, MeanSquaredLogarithmicErrorMetric)
KEEL_REGISTER(Metric, RootMeanSquaredErrorMetric)

}  // namespace keel
