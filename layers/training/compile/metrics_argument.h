// MetricsArgument: what compile() takes as metrics, for one output or several.
#pragma once

#include <keel/layers/metrics/metric.h>
#include <keel/layers/training/compile/by_output.h>

namespace keel {

// Metrics of the only output of a model or, for several outputs, one of each by position:
//   {"mae", metrics::AUC({})}
// or any number for each output, by name or, as a vector of vectors, by position:
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

  // Those of all outputs together.
  List all() const;
  // Of each output. ValueError, naming `caller`, for lists of another length and unknown names.
  std::vector<List> resolve(const std::string& caller,
                            const std::vector<std::string>& outputs) const;
  // As Keras's files have it; null without metrics.
  Config config() const;
  static MetricsArgument from_config(const Config& config);

 private:
  std::optional<List> flat_;
  ByOutput<List> by_output_;
};

}  // namespace keel
