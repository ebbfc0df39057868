// CompiledMetrics: the metrics of a model's outputs, under the names that logs have.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include <keel/layers/training/compile/logs.h>
#include <keel/layers/training/compile/metrics_argument.h>

namespace keel {

class CompiledMetrics {
 public:
  // Makes their sums anew, for the strategy of now.
  CompiledMetrics(MetricsArgument metrics, MetricsArgument weighted_metrics);

  // Settles which output has which metrics. ValueError for names and numbers that do not fit.
  void resolve(const std::vector<std::string>& outputs);

  // Tensors are by output; a weight may be empty. Outputs without labels must have no metric
  // (ValueError, naming `caller`).
  void update(const char* caller, std::span<const Tensor> labels,
              std::span<const Tensor> predictions, std::span<const Tensor> weights) const;

  // All of them, those that see sample weights last.
  std::vector<MetricHandle> all() const;
  // "auc", or "<output>_auc" if there are several outputs. The second of a name is "auc_1"; one
  // that sees sample weights beside one that does not is "weighted_auc". Of those that `shown`
  // says.
  Logs results(const std::function<bool(const Metric&)>& shown,
               const std::function<double(const Metric&)>& result_of) const;

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
