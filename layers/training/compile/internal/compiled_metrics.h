// CompiledMetrics: the metrics of a model's outputs, under their names in logs.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <keel/framework/base/function_ref.h>
#include <keel/layers/training/compile/compile_options.h>
#include <keel/layers/training/compile/step_data.h>

namespace keel {

// Holds the metrics of compile() and updates them from the outputs of a model.
class CompiledMetrics {
 public:
  // Rebuilds the state of each metric for the current strategy.
  CompiledMetrics(MetricsArgument metrics, MetricsArgument weighted_metrics);

  // Assigns metrics to `outputs`, the names of the model's outputs. Throws ValueError if a name is
  // unknown or if a list does not have one item per output.
  void resolve(const std::vector<std::string>& outputs);

  // Updates the metrics from `labels`, `predictions` and `weights`, which have one item per output;
  // an item of `weights` may be empty. Throws ValueError, prefixed with `caller`, if an output has
  // a metric but no labels.
  void update(const char* caller, std::span<const Tensor> labels,
              std::span<const Tensor> predictions, std::span<const Tensor> weights) const;

  // Returns all metrics: those of `metrics` first, then those of `weighted_metrics`.
  std::vector<MetricHandle> all() const;
  // Returns the results of the metrics for which `shown` returns true. A metric is named "auc", or
  // "<output>_auc" if the model has several outputs. The second metric with the same name becomes
  // "auc_1". A weighted metric whose name is taken by an unweighted one becomes "weighted_auc".
  Logs results(FunctionRef<bool(const Metric&)> shown,
               FunctionRef<double(const Metric&)> result_of) const;

 private:
  struct Entry {
    MetricHandle metric;
    size_t output = 0;
    bool weighted = false;
    std::string name;
  };
  const MetricsArgument metrics_, weighted_;
  std::vector<std::string> outputs_;
  std::vector<Entry> entries_;
};

}  // namespace keel
