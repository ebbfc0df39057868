// MetricsArgument: the metrics argument of compile(), for models with one or several outputs.
#pragma once

#include <keel/layers/metrics/metric.h>
#include <keel/layers/training/compile/by_output.h>

namespace keel {

// Holds the metrics of the only output or, for a model with several outputs, one metric per output
// by position:
//   {"mae", metrics::AUC({})}
// or any number of metrics per output, by name or, as a vector of vectors, by position:
//   {{"click", {"auc"}}, {"stay", {"mae", "mse"}}}
class MetricsArgument {
 public:
  using List = std::vector<MetricArgument>;
  using Named = std::pair<const std::string, List>;

  MetricsArgument() = default;
  MetricsArgument(std::initializer_list<MetricArgument> metrics) : flat_(metrics) {}
  MetricsArgument(List metrics) : flat_(std::move(metrics)) {}  // NOLINT: implicit
  MetricsArgument(std::vector<List> of_outputs) : by_output_(std::move(of_outputs)) {}  // NOLINT
  MetricsArgument(std::initializer_list<Named> of_outputs) : by_output_(of_outputs) {}
  MetricsArgument(std::map<std::string, List> of_outputs)  // NOLINT: implicit
      : by_output_(std::move(of_outputs)) {}

  // Returns the metrics of all outputs in one list.
  List all() const;
  // Returns the metrics of each output. Throws ValueError, prefixed with `caller`, if a list does
  // not have one item per output or if a dict names an unknown output.
  std::vector<List> resolve(const std::string& caller,
                            const std::vector<std::string>& outputs) const;
  // Converts to the form that Keras files use; null without metrics.
  Config config() const;
  // Inverse of config().
  static MetricsArgument from_config(const Config& config);

 private:
  std::optional<List> flat_;
  ByOutput<List> by_output_;
};

}  // namespace keel
