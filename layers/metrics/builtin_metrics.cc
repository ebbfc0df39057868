#include <algorithm>
#include <mutex>

#include <keel/layers/internal/class_lookup.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/mean.h>

// The sources that register metrics with KEEL_REGISTER_ALL(Metric, <name>, ...).
// clang-format off
#define KEEL_METRIC_GROUPS(X) \
  X(accuracy_metrics) \
  X(auc_metrics) \
  X(classification_metrics) \
  X(confusion_metrics) \
  X(exact_auc_metrics) \
  X(mean_metrics) \
  X(operating_point_metrics) \
  X(probabilistic_metrics) \
  X(ranking_metrics) \
  X(regression_metrics) \
  X(segmentation_metrics)
// clang-format on

namespace keel {
namespace internal {

#define DECLARE(group) KEEL_DECLARE_REGISTRATION(Metric, group)
KEEL_METRIC_GROUPS(DECLARE)
#undef DECLARE

}  // namespace internal

namespace {

// Returns the class that `name` stands for, or an empty string if there is none.
std::string class_of(const std::string& name) {
  static constexpr ClassAlias kAliases[] = {
      {"acc", "AutoAccuracy"},          {"accuracy", "AutoAccuracy"},
      {"Accuracy", "AutoAccuracy"},     {"fbeta_score", "FBetaScore"},
      {"log_cosh", "LogCoshError"},     {"logcosh", "LogCoshError"},
      {"rmse", "RootMeanSquaredError"}, {"RMSE", "RootMeanSquaredError"},
  };
  return find_class(metric_registry().class_names(), kAliases, name);
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
#define ADD(group) internal::register_##group(registry);
    KEEL_METRIC_GROUPS(ADD)
#undef ADD
    registry.add("MeanMetricWrapper", make_wrapper, {.package = "keras"});
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
  return Config::dict(
      {{"class_name", metric_registry().name_of(metric)}, {"config", metric.get_config()}});
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
