// R2Score: the fraction of the labels' variance that the predictions explain.
#pragma once

#include <optional>

#include <keel/layers/metrics/metric.h>

namespace keel {

// The options of R2ScoreMetric.
struct R2ScoreMetricOptions {
  std::string name = "r2_score";
  DType dtype = DType::kFloat32;
  // "uniform_average", "variance_weighted_average", or unset for one number per column.
  std::optional<std::string> class_aggregation = "uniform_average";
  int64_t num_regressors = 0;  // number of independent variables, for the adjusted score; >= 0

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("class_aggregation", self.class_aggregation);
    field("num_regressors", self.num_regressors);
  }
};

// For each column of y_true and y_pred [batch, columns], the score is 1 - (sum of squared errors) /
// (sum of squared deviations of the labels from their mean). The score is 0 if the labels do not
// vary but there are errors. The score is not adjusted if there are too few samples for
// num_regressors.
class R2ScoreMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "R2Score";
  using Options = R2ScoreMetricOptions;
  explicit R2ScoreMetric(Options options);  // Throws ValueError for options out of range.
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  int64_t state_size_of(const MetricBatch& batch) const override;
  double adjusted(double score, double samples) const;

  const Options options_;
};

namespace metrics {
// A handle to the metric, under Keras's name.
using R2Score = Handle<R2ScoreMetric>;
}  // namespace metrics

}  // namespace keel
