#include "layers/metrics/metric.h"

#include <mutex>
#include <tuple>

#include "autodiff/replica_context.h"
#include "autodiff/tape.h"
#include "layers/losses/loss.h"
#include "layers/metrics/accuracy.h"
#include "layers/metrics/auc.h"
#include "layers/metrics/confusion.h"
#include "layers/metrics/mean.h"

namespace keel {
namespace {

void check_no_nan(const std::string& who, const Tensor& prediction) {
  const auto values = prediction.data<float>();
  bool any = false;
  for (const float v : values) any |= v != v;
  if (!any) return;
  size_t i = 0;
  while (values[i] == values[i]) ++i;
  throw ValueError(who, ": predictions must be numbers, received NaN at position ", i, " of shape ",
                   prediction.shape());
}

// Without the last dimensions that are 1.
Tensor fit_weight(const std::string& who, const Tensor& weight, const Tensor& prediction) {
  Shape shape = weight.shape();
  while (shape.rank() > 1 && shape[-1] == 1) shape = shape.drop_last();
  if (shape.rank() == 0 || shape.rank() > prediction.rank() ||
      shape != prediction.shape().slice(0, shape.rank())) {
    throw ValueError(who, ": sample_weight must have the leading dimensions of the predictions, ",
                     prediction.shape(), ", received shape ", weight.shape());
  }
  return weight.cast(DType::kFloat32);
}

}  // namespace

MetricBatch::Weights MetricBatch::weights_of(int64_t values) const {
  if (!sample_weight || sample_weight.size() == 0) return {{}, 1};
  if (values % sample_weight.size() != 0) {
    throw ValueError("Metric: sample_weight of shape ", sample_weight.shape(), " for ", values,
                     " values");
  }
  return {sample_weight.data<float>(), values / sample_weight.size()};
}

Metric::Metric(std::string class_name, std::string name, int64_t state_size)
    : class_name_(std::move(class_name)), name_(std::move(name)), state_size_(state_size) {
  rebuild();
}

void Metric::rebuild() {
  state_ = Variable(Tensor::zeros({state_size_}, DType::kFloat64),
                    {.name = name_,
                     .trainable = false,
                     .synchronization = VariableSynchronization::kOnRead,
                     .aggregation = VariableAggregation::kSum});
}

void Metric::update_state(const Tensor& y_true, const Tensor& y_pred, const Tensor& sample_weight) {
  if (y_pred.is_symbolic()) throw TypeError(name_, ": needs predictions, received a symbol");
  const NoGradient pause;
  MetricBatch batch;
  const Tensor prediction =
      y_pred.dtype() == DType::kFloat32 ? y_pred : y_pred.cast(DType::kFloat32);
  if (sparse_labels(y_true, prediction)) {
    batch.y_true = y_true;
    batch.y_pred = prediction;
  } else {
    std::tie(batch.y_true, batch.y_pred) = fit_labels(name_, y_true, prediction);
  }
  check_no_nan(name_, batch.y_pred);
  if (sample_weight) batch.sample_weight = fit_weight(name_, sample_weight, batch.y_pred);
  std::vector<double> sums(state_size_);
  accumulate(batch, sums);
  Tensor next = state_.read().clone();
  const auto state = next.mutable_data<double>();
  for (size_t i = 0; i < sums.size(); ++i) state[i] += sums[i];
  state_.assign(next);
}

double Metric::result() const {
  if (current_replica_context() != nullptr) {
    throw RuntimeError(name_, ": the result is known outside the replicas only");
  }
  return compute(state_.read().data<double>());
}

void Metric::reset_state() { state_.assign(Tensor::zeros({state_size_}, DType::kFloat64)); }

Registry<Metric>& metric_registry() {
  static Registry<Metric> registry("metric");
  static std::once_flag filled;
  std::call_once(filled, [] {
    registry.add<MeanMetric>();
    registry.add<MeanSquaredErrorMetric>();
    registry.add<RootMeanSquaredErrorMetric>();
    registry.add<MeanAbsoluteErrorMetric>();
    registry.add<BinaryCrossentropyMetric>();
    registry.add<BinaryAccuracyMetric>();
    registry.add<CategoricalAccuracyMetric>();
    registry.add<SparseCategoricalAccuracyMetric>();
    registry.add<AutoAccuracyMetric>();
    registry.add<AUCMetric>();
    registry.add<PrecisionMetric>();
    registry.add<RecallMetric>();
  });
  return registry;
}

Config MetricArgument::config() const {
  return by_name_ ? Config(metric_->name()) : metrics::serialize(*metric_);
}

namespace metrics {

MetricHandle get(const std::string& name) {
  static const std::pair<const char*, const char*> kNames[] = {
      {"accuracy", "AutoAccuracy"},
      {"acc", "AutoAccuracy"},
      {"mean_squared_error", "MeanSquaredError"},
      {"mse", "MeanSquaredError"},
      {"MSE", "MeanSquaredError"},
      {"root_mean_squared_error", "RootMeanSquaredError"},
      {"rmse", "RootMeanSquaredError"},
      {"RMSE", "RootMeanSquaredError"},
      {"mean_absolute_error", "MeanAbsoluteError"},
      {"mae", "MeanAbsoluteError"},
      {"MAE", "MeanAbsoluteError"},
      {"binary_crossentropy", "BinaryCrossentropy"},
      {"bce", "BinaryCrossentropy"},
      {"BCE", "BinaryCrossentropy"},
      {"binary_accuracy", "BinaryAccuracy"},
      {"categorical_accuracy", "CategoricalAccuracy"},
      {"sparse_categorical_accuracy", "SparseCategoricalAccuracy"},
      {"auc", "AUC"},
      {"precision", "Precision"},
      {"recall", "Recall"},
      {"mean", "Mean"},
  };
  for (const auto& [alias, class_name] : kNames) {
    if (name == alias) {
      return {kAdopt, metric_registry().make(class_name, Config::dict({{"name", name}}))};
    }
  }
  return {kAdopt, metric_registry().make(name, Config::dict())};
}

Config serialize(const Metric& metric) {
  return Config::dict({{"class_name", metric.class_name()}, {"config", metric.get_config()}});
}

MetricHandle deserialize(const Config& config) {
  if (config.is_string()) return get(config.string());
  Config parameters = config["config"];
  parameters.erase("fn");
  return {kAdopt, metric_registry().make(config["class_name"].string(), parameters)};
}

}  // namespace metrics
}  // namespace keel
