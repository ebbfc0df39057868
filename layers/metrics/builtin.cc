#include <algorithm>
#include <mutex>

#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/accuracy.h>
#include <keel/layers/metrics/auc.h>
#include <keel/layers/metrics/calibration.h>
#include <keel/layers/metrics/confusion.h>
#include <keel/layers/metrics/correlation.h>
#include <keel/layers/metrics/crossentropy.h>
#include <keel/layers/metrics/exact_auc.h>
#include <keel/layers/metrics/f_score.h>
#include <keel/layers/metrics/hinge.h>
#include <keel/layers/metrics/mean.h>
#include <keel/layers/metrics/operating_point.h>
#include <keel/layers/metrics/probabilistic.h>
#include <keel/layers/metrics/r2_score.h>
#include <keel/layers/metrics/ranking.h>
#include <keel/layers/metrics/regression.h>
#include <keel/layers/naming.h>

namespace keel {
namespace {

// Names that are not the class name in snake case.
std::string class_of_alias(const std::string& name) {
  static const std::pair<const char*, const char*> kAliases[] = {
      {"acc", "AutoAccuracy"},
      {"accuracy", "AutoAccuracy"},
      {"Accuracy", "AutoAccuracy"},
      {"bce", "BinaryCrossentropy"},
      {"BCE", "BinaryCrossentropy"},
      {"ce", "AutoCrossentropy"},
      {"cosine_proximity", "CosineSimilarity"},
      {"crossentropy", "AutoCrossentropy"},
      {"fbeta_score", "FBetaScore"},
      {"kld", "KLDivergence"},
      {"KLD", "KLDivergence"},
      {"kullback_leibler_divergence", "KLDivergence"},
      {"log_cosh", "LogCoshError"},
      {"logcosh", "LogCoshError"},
      {"mae", "MeanAbsoluteError"},
      {"MAE", "MeanAbsoluteError"},
      {"mape", "MeanAbsolutePercentageError"},
      {"MAPE", "MeanAbsolutePercentageError"},
      {"mse", "MeanSquaredError"},
      {"MSE", "MeanSquaredError"},
      {"msle", "MeanSquaredLogarithmicError"},
      {"MSLE", "MeanSquaredLogarithmicError"},
      {"rmse", "RootMeanSquaredError"},
      {"RMSE", "RootMeanSquaredError"},
  };
  for (const auto& [alias, class_name] : kAliases) {
    if (name == alias) return class_name;
  }
  return {};
}

// Empty if there is none.
std::string class_of(const std::string& name) {
  if (const std::string known = class_of_alias(name); !known.empty()) return known;
  for (const std::string& class_name : metric_registry().class_names()) {
    if (class_name == name || to_snake_case(class_name) == name) return class_name;
  }
  return {};
}

// The mean of a function that Keras's file names: that of a metric here, or of a loss.
std::shared_ptr<Metric> make_wrapper(const Config& config) {
  const Config& fn = config["fn"];
  const Config* inner = fn.is_dict() ? fn.find("config") : nullptr;
  const bool is_function = fn.is_string() || (inner != nullptr && inner->is_string());
  if (is_function) {
    const std::string class_name = class_of(fn.is_string() ? fn.string() : inner->string());
    if (!class_name.empty()) {
      Config parameters = config;
      parameters.erase("fn");
      return metric_registry().make(class_name, parameters);
    }
  }
  MeanMetricWrapperMetricOptions options{
      .fn = fn.is_string() ? LossArgument(fn.string()) : LossArgument(losses::deserialize(fn))};
  const auto find = [&](const char* key) {
    const Config* const found = config.find(key);
    return found == nullptr || found->is_null() ? nullptr : found;
  };
  if (const Config* name = find("name")) options.name = name->string();
  if (const Config* dtype = find("dtype")) decode(*dtype, options.dtype);
  return std::make_shared<MeanMetricWrapperMetric>(std::move(options));
}

void add_means(Registry<Metric>& registry) {
  registry.add<AutoCrossentropyMetric>();
  registry.add<BinaryCrossentropyMetric>();
  registry.add<CategoricalCrossentropyMetric>();
  registry.add<CategoricalHingeMetric>();
  registry.add<ConcordanceCorrelationMetric>();
  registry.add<CosineSimilarityMetric>();
  registry.add<HingeMetric>();
  registry.add<KLDivergenceMetric>();
  registry.add<LogCoshErrorMetric>();
  registry.add<MeanAbsoluteErrorMetric>();
  registry.add<MeanAbsolutePercentageErrorMetric>();
  registry.add<MeanMetric>();
  registry.add("MeanMetricWrapper", make_wrapper);
  registry.add<MeanSquaredErrorMetric>();
  registry.add<MeanSquaredLogarithmicErrorMetric>();
  registry.add<PearsonCorrelationMetric>();
  registry.add<PoissonMetric>();
  registry.add<R2ScoreMetric>();
  registry.add<RootMeanSquaredErrorMetric>();
  registry.add<SparseCategoricalCrossentropyMetric>();
  registry.add<SquaredHingeMetric>();
  registry.add<SumMetric>();
}

void add_decisions(Registry<Metric>& registry) {
  registry.add<AccuracyMetric>();
  registry.add<AUCMetric>();
  registry.add<AutoAccuracyMetric>();
  registry.add<BinaryAccuracyMetric>();
  registry.add<CategoricalAccuracyMetric>();
  registry.add<F1ScoreMetric>();
  registry.add<FalseNegativesMetric>();
  registry.add<FalsePositivesMetric>();
  registry.add<FBetaScoreMetric>();
  registry.add<PrecisionAtRecallMetric>();
  registry.add<PrecisionMetric>();
  registry.add<RecallAtPrecisionMetric>();
  registry.add<RecallMetric>();
  registry.add<SensitivityAtSpecificityMetric>();
  registry.add<SparseCategoricalAccuracyMetric>();
  registry.add<SparseTopKCategoricalAccuracyMetric>();
  registry.add<SpecificityAtSensitivityMetric>();
  registry.add<TopKCategoricalAccuracyMetric>();
  registry.add<TrueNegativesMetric>();
  registry.add<TruePositivesMetric>();
}

void add_ranking(Registry<Metric>& registry) {
  registry.add<CalibrationMetric>();
  registry.add<DCGMetric>();
  registry.add<ExactAUCMetric>();
  registry.add<GAUCMetric>();
  registry.add<MeanAveragePrecisionMetric>();
  registry.add<MeanReciprocalRankMetric>();
  registry.add<NDCGMetric>();
  registry.add<NormalizedEntropyMetric>();
  registry.add<PrecisionAtKMetric>();
  registry.add<RecallAtKMetric>();
}

}  // namespace

Registry<Metric>& metric_registry() {
  static Registry<Metric> registry("metric");
  static std::once_flag filled;
  std::call_once(filled, [] {
    add_means(registry);
    add_decisions(registry);
    add_ranking(registry);
  });
  return registry;
}

namespace metrics {

MetricHandle get(const std::string& name) {
  const std::string class_name = class_of(name);
  return {kAdopt, metric_registry().make(class_name.empty() ? name : class_name,
                                         Config::dict({{"name", name}}))};
}

Config serialize(const Metric& metric) {
  return Config::dict({{"class_name", metric.class_name()}, {"config", metric.get_config()}});
}

MetricHandle deserialize(const Config& config) {
  if (config.is_string()) return get(config.string());
  const std::string& class_name = config["class_name"].string();
  if (class_name == "function") return get(config["config"].string());
  const Config* inner = config.find("config");
  Config parameters = inner == nullptr || inner->is_null() ? Config::dict() : *inner;
  if (class_name != "MeanMetricWrapper") parameters.erase("fn");
  return {kAdopt, metric_registry().make(class_name, parameters)};
}

}  // namespace metrics
}  // namespace keel
