#include <algorithm>
#include <mutex>

#include <keel/layers/internal/naming.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/mean.h>

// Every metric that files may name. A new metric needs a header, a source with
// KEEL_REGISTER(Metric, MyMetric), a test, and a line in this list.
// clang-format off
#define KEEL_BUILTIN_METRICS(X) \
  X(AccuracyMetric) \
  X(AUCMetric) \
  X(AutoAccuracyMetric) \
  X(AutoCrossentropyMetric) \
  X(BinaryAccuracyMetric) \
  X(BinaryCrossentropyMetric) \
  X(CalibrationMetric) \
  X(CategoricalAccuracyMetric) \
  X(CategoricalCrossentropyMetric) \
  X(CategoricalHingeMetric) \
  X(ConcordanceCorrelationMetric) \
  X(CosineSimilarityMetric) \
  X(DCGMetric) \
  X(ExactAUCMetric) \
  X(F1ScoreMetric) \
  X(FalseNegativesMetric) \
  X(FalsePositivesMetric) \
  X(FBetaScoreMetric) \
  X(GAUCMetric) \
  X(HingeMetric) \
  X(KLDivergenceMetric) \
  X(LogCoshErrorMetric) \
  X(MeanAbsoluteErrorMetric) \
  X(MeanAbsolutePercentageErrorMetric) \
  X(MeanAveragePrecisionMetric) \
  X(MeanMetric) \
  X(MeanReciprocalRankMetric) \
  X(MeanSquaredErrorMetric) \
  X(MeanSquaredLogarithmicErrorMetric) \
  X(NDCGMetric) \
  X(NormalizedEntropyMetric) \
  X(PearsonCorrelationMetric) \
  X(PoissonMetric) \
  X(PrecisionAtKMetric) \
  X(PrecisionAtRecallMetric) \
  X(PrecisionMetric) \
  X(R2ScoreMetric) \
  X(RecallAtKMetric) \
  X(RecallAtPrecisionMetric) \
  X(RecallMetric) \
  X(RootMeanSquaredErrorMetric) \
  X(SensitivityAtSpecificityMetric) \
  X(SparseCategoricalAccuracyMetric) \
  X(SparseCategoricalCrossentropyMetric) \
  X(SparseTopKCategoricalAccuracyMetric) \
  X(SpecificityAtSensitivityMetric) \
  X(SquaredHingeMetric) \
  X(SumMetric) \
  X(TopKCategoricalAccuracyMetric) \
  X(TrueNegativesMetric) \
  X(TruePositivesMetric)
// clang-format on

namespace keel {
namespace internal {

#define DECLARE(name) KEEL_DECLARE_REGISTRATION(Metric, name)
KEEL_BUILTIN_METRICS(DECLARE)
#undef DECLARE

}  // namespace internal

namespace {

// Aliases that are not the class name in snake case.
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

// Returns the class with this name or alias, or an empty string.
std::string class_of(const std::string& name) {
  if (const std::string known = class_of_alias(name); !known.empty()) return known;
  for (const std::string& class_name : metric_registry().class_names()) {
    if (class_name == name || to_snake_case(class_name) == name) return class_name;
  }
  return {};
}

// Returns the mean of a function that Keras's file names: a metric here if there is one of this
// name, else the mean of the loss.
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

}  // namespace

Registry<Metric>& metric_registry() {
  static Registry<Metric> registry("metric");
  static std::once_flag filled;
  std::call_once(filled, [] {
#define ADD(name) internal::register_##name(registry);
    KEEL_BUILTIN_METRICS(ADD)
#undef ADD
    registry.add("MeanMetricWrapper", make_wrapper);
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
