#include <algorithm>

#include <keel/layers/training/compile/compile_options.h>

namespace keel {
namespace {

using List = MetricsArgument::List;

bool is_object(const Config& config) {
  return config.is_string() || (config.is_dict() && config.find("class_name") != nullptr);
}

MetricArgument metric_from(const Config& config) {
  if (config.is_string()) return config.string();
  return metrics::deserialize(config);
}

// Reads the metrics of one output: null, one metric or a list.
List list_from(const Config& config) {
  List out;
  if (config.is_null()) return out;
  if (is_object(config)) return {metric_from(config)};
  for (const Config& metric : config.items()) {
    if (!metric.is_null()) out.push_back(metric_from(metric));
  }
  return out;
}

Config config_of(const List& metrics) {
  Config::List out;
  for (const MetricArgument& metric : metrics) out.push_back(metric.config());
  return out;
}

}  // namespace

List MetricsArgument::all() const {
  List out = flat_.value_or(List());
  for (const List& list : by_output_.values()) out.insert(out.end(), list.begin(), list.end());
  return out;
}

std::vector<List> MetricsArgument::resolve(const std::string& caller,
                                           const std::vector<std::string>& outputs) const {
  if (!flat_ || flat_->empty()) return by_output_.resolve(caller, outputs, {});
  if (outputs.size() == 1) return {*flat_};
  if (flat_->size() != outputs.size()) {
    throw ValueError(caller, ": a list of metrics must have one item for each of the ",
                     outputs.size(), " outputs, received ", flat_->size(),
                     "; use a dict by output name for any other number of metrics");
  }
  std::vector<List> out;
  for (const MetricArgument& metric : *flat_) out.push_back({metric});
  return out;
}

Config MetricsArgument::config() const {
  if (flat_) return config_of(*flat_);
  if (by_output_.list()) {
    Config::List out;
    for (const List& list : *by_output_.list()) out.push_back(config_of(list));
    return out;
  }
  if (!by_output_.dict()) return {};
  Config out = Config::dict();
  for (const auto& [name, list] : *by_output_.dict()) out.set(name, config_of(list));
  return out;
}

MetricsArgument MetricsArgument::from_config(const Config& config) {
  if (config.is_null()) return {};
  if (is_object(config)) return list_from(config);
  if (config.is_dict()) {
    std::map<std::string, List> out;
    for (const auto& [name, metrics] : config.entries()) out[name] = list_from(metrics);
    return out;
  }
  const auto& items = config.items();
  if (std::ranges::all_of(items, is_object)) return list_from(config);
  std::vector<List> out;
  for (const Config& metrics : items) out.push_back(list_from(metrics));
  return out;
}

}  // namespace keel
