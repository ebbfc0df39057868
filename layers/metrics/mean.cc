#include "layers/metrics/mean.h"

#include <cmath>

#include "layers/losses/crossentropy.h"
#include "layers/losses/regression.h"

namespace keel {

void MeanOfSamples::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const Tensor samples = values(batch);
  const auto weights = batch.weights_of(samples.size());
  const auto value = samples.data<float>();
  for (int64_t i = 0; i < samples.size(); ++i) {
    const double weight = weights[i];
    state[0] += weight * value[i];
    state[1] += weight;
  }
}

double MeanOfSamples::compute(std::span<const double> state) const {
  return state[1] == 0 ? 0 : state[0] / state[1];
}

Tensor MeanSquaredErrorMetric::values(const MetricBatch& batch) const {
  return losses::mean_squared_error(batch.y_true, batch.y_pred);
}

Tensor RootMeanSquaredErrorMetric::values(const MetricBatch& batch) const {
  return losses::mean_squared_error(batch.y_true, batch.y_pred);
}

double RootMeanSquaredErrorMetric::compute(std::span<const double> state) const {
  return std::sqrt(MeanOfSamples::compute(state));
}

Tensor MeanAbsoluteErrorMetric::values(const MetricBatch& batch) const {
  return losses::mean_absolute_error(batch.y_true, batch.y_pred);
}

Tensor BinaryCrossentropyMetric::values(const MetricBatch& batch) const {
  return losses::binary_crossentropy(batch.y_true, batch.y_pred, options_.from_logits,
                                     options_.label_smoothing);
}

}  // namespace keel
