#include <keel/layers/training/compile/internal/compiled_metrics.h>

#include <absl/strings/str_cat.h>
#include <map>

namespace keel {
namespace {

// Makes names unique by the rules of Keras's logs.
class UniqueNames {
 public:
  std::string next(const std::string& prefix, const std::string& name, bool weighted) {
    std::string out = prefix + name;
    if (weighted && used_.contains(out)) out = prefix + "weighted_" + name;
    const int before = used_[out]++;
    return before == 0 ? out : absl::StrCat(out, "_", before);
  }

 private:
  std::map<std::string, int> used_;
};

}  // namespace

CompiledMetrics::CompiledMetrics(MetricsArgument metrics, MetricsArgument weighted_metrics)
    : metrics_(std::move(metrics)), weighted_(std::move(weighted_metrics)) {
  for (const MetricHandle& metric : all()) metric->rebuild();
  // These names are used until resolve(); overridden steps of a model may never call it.
  UniqueNames names;
  for (const bool weighted : {false, true}) {
    for (const MetricArgument& metric : (weighted ? weighted_ : metrics_).all()) {
      const std::string& name = metric.handle()->name();
      entries_.push_back({.metric = metric.handle(),
                          .weighted = weighted,
                          .name = names.next("", name, weighted)});
    }
  }
}

void CompiledMetrics::resolve(const std::vector<std::string>& outputs) {
  std::vector<Entry> entries;
  UniqueNames names;
  for (const bool weighted : {false, true}) {
    const std::string caller =
        absl::StrCat("Model.compile, ", weighted ? "weighted_" : "", "metrics");
    const auto lists = (weighted ? weighted_ : metrics_).resolve(caller, outputs);
    for (size_t i = 0; i < lists.size(); ++i) {
      const std::string prefix = outputs.size() == 1 ? "" : outputs[i] + "_";
      for (const MetricArgument& metric : lists[i]) {
        entries.push_back({.metric = metric.handle(),
                           .output = i,
                           .weighted = weighted,
                           .name = names.next(prefix, metric.handle()->name(), weighted)});
      }
    }
  }
  entries_ = std::move(entries);
  outputs_ = outputs;
}

void CompiledMetrics::update(const char* caller, std::span<const Tensor> labels,
                             std::span<const Tensor> predictions,
                             std::span<const Tensor> weights) const {
  for (const Entry& entry : entries_) {
    const size_t i = entry.output;
    if (!labels[i]) {
      throw ValueError(
          caller, ": output '", outputs_[i],
          "' has a metric, but the data has no labels for it; pass labels or remove the metric");
    }
    entry.metric->update_state(labels[i], predictions[i], entry.weighted ? weights[i] : Tensor());
  }
}

std::vector<MetricHandle> CompiledMetrics::all() const {
  std::vector<MetricHandle> out;
  for (const MetricsArgument* argument : {&metrics_, &weighted_}) {
    for (const MetricArgument& metric : argument->all()) out.push_back(metric.handle());
  }
  return out;
}

Logs CompiledMetrics::results(FunctionRef<bool(const Metric&)> shown,
                              FunctionRef<double(const Metric&)> result_of) const {
  Logs out;
  for (const Entry& entry : entries_) {
    if (shown(*entry.metric)) out[entry.name] = result_of(*entry.metric);
  }
  return out;
}

}  // namespace keel
