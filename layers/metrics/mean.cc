#include <keel/layers/metrics/mean.h>

#include <keel/framework/config/registry.h>

namespace keel {
namespace {

MeanMetricWrapperMetricOptions checked(MeanMetricWrapperMetricOptions options) {
  if (!options.fn) throw ValueError("MeanMetricWrapper: fn is not set; pass a loss function");
  if (options.name.empty()) options.name = options.fn.shared()->name();
  return options;
}

}  // namespace

void MeanOfSamples::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const Tensor samples = values(batch);
  const auto weights = batch.weights_of(samples.size());
  const auto value = samples.data<float>();
  const Tensor mask = batch.sample_weight ? samples.mask() : Tensor();
  for (int64_t i = 0; i < samples.size(); ++i) {
    if (mask && !mask.data<bool>()[i]) continue;
    const double weight = weights[i];
    state[0] += weight * value[i];
    state[1] += weight;
  }
}

Tensor MeanOfSamples::compute(std::span<const double> state) const {
  return Tensor::scalar(state[1] == 0 ? 0.0 : state[0] / state[1]);
}

void SumMetric::accumulate(const MetricBatch& batch, std::span<double> state) const {
  const auto weights = batch.weights_of(batch.y_pred.size());
  const auto value = batch.y_pred.data<float>();
  for (int64_t i = 0; i < batch.y_pred.size(); ++i) state[0] += weights[i] * value[i];
}

Tensor SumMetric::compute(std::span<const double> state) const { return Tensor::scalar(state[0]); }

MeanMetricWrapperMetric::MeanMetricWrapperMetric(Options options)
    : MeanOfSamples(kClassName, checked(options)), options_(checked(std::move(options))) {}

Config MeanMetricWrapperMetric::get_config() const {
  return Config::dict(
      {{"name", options_.name}, {"dtype", encode(options_.dtype)}, {"fn", options_.fn.config()}});
}

Tensor MeanMetricWrapperMetric::values(const MetricBatch& batch) const {
  return options_.fn.shared()->weighted(batch.y_true, batch.y_pred.with_mask({}));
}

KEEL_REGISTER_ALL(Metric, mean_metrics) {
  registry.add_all<MeanMetric, SumMetric>({.package = "keras"});
}

}  // namespace keel
