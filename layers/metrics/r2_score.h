// R2Score: the part of the labels' variance that predictions explain.
#pragma once

#include <optional>

#include <keel/layers/metrics/metric.h>

namespace keel {

struct R2ScoreMetricOptions {
  std::string name = "r2_score";
  DType dtype = DType::kFloat32;
  // Or "variance_weighted_average", or unset: a number for each column.
  std::optional<std::string> class_aggregation = "uniform_average";
  int64_t num_regressors = 0;  // independent variables of the model, for the adjusted score; >= 0

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("class_aggregation", self.class_aggregation);
    field("num_regressors", self.num_regressors);
  }
};

// Of each column of y_true and y_pred [batch, columns]: 1 - (sum of squared errors) / (sum of
// squared deviations of the labels from their mean); 0 where labels do not vary. Not adjusted while
// there are too few samples for num_regressors.
class R2ScoreMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "R2Score";
  using Options = R2ScoreMetricOptions;
  explicit R2ScoreMetric(Options options);  // ValueError for options out of range
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
using R2Score = Handle<R2ScoreMetric>;
}

}  // namespace keel
