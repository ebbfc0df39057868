// Regression metrics: mean errors, correlations and R2. Errors are means over samples of the losses
// with the same names (losses/regression.h).
#pragma once

#include <optional>

#include <keel/layers/losses/regression.h>
#include <keel/layers/metrics/mean.h>

namespace keel {

using MeanSquaredErrorMetric =
    FormulaMetric<"MeanSquaredError", MetricOptions<losses::mean_squared_error>>;
using MeanAbsoluteErrorMetric =
    FormulaMetric<"MeanAbsoluteError", MetricOptions<losses::mean_absolute_error>>;
using MeanAbsolutePercentageErrorMetric =
    FormulaMetric<"MeanAbsolutePercentageError",
                  MetricOptions<losses::mean_absolute_percentage_error>>;
using MeanSquaredLogarithmicErrorMetric =
    FormulaMetric<"MeanSquaredLogarithmicError",
                  MetricOptions<losses::mean_squared_logarithmic_error>>;

// The options of metrics::LogCoshError, the mean of losses::log_cosh().
struct LogCoshErrorMetricOptions {
  std::string name = "logcosh";
  DType dtype = DType::kFloat32;  // kept for files only

  static constexpr auto kDirection = Metric::Direction::kDown;
  static constexpr void fields(auto& self, auto&& field) { metric_fields(self, field); }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::log_cosh(y_true, y_pred);
  }
};
using LogCoshErrorMetric = FormulaMetric<"LogCoshError", LogCoshErrorMetricOptions>;

// The options of metrics::RootMeanSquaredError, the square root of the mean squared error over all
// batches. Keras ignores masks here.
struct RootMeanSquaredErrorMetricOptions {
  std::string name = "root_mean_squared_error";
  DType dtype = DType::kFloat32;  // kept for files only

  static constexpr auto kDirection = Metric::Direction::kDown;
  static constexpr void fields(auto& self, auto&& field) { metric_fields(self, field); }
  static bool uses_mask() { return false; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::mean_squared_error(y_true, y_pred);
  }
  double result(double mean) const;  // returns the square root
};
using RootMeanSquaredErrorMetric =
    FormulaMetric<"RootMeanSquaredError", RootMeanSquaredErrorMetricOptions>;

// The options of metrics::CosineSimilarity, the mean cosine of the angle between labels and
// predictions, which are vectors along `axis`.
struct CosineSimilarityMetricOptions {
  std::string name = "cosine_similarity";
  DType dtype = DType::kFloat32;  // kept for files only
  int axis = -1;                  // written to configs unless it is -1

  static constexpr auto kDirection = Metric::Direction::kUp;
  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("axis", self.axis);
  }
  Config get_config() const;
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const;
};
using CosineSimilarityMetric = FormulaMetric<"CosineSimilarity", CosineSimilarityMetricOptions>;

namespace metrics {

// Return the correlation of the labels and predictions of each sample, float32. A sample consists
// of the elements along `axis`.
//
// Pearson correlation: the mean of the product of labels and predictions, after both are
// standardized to mean 0 and variance 1.
Tensor pearson_correlation(const Tensor& y_true, const Tensor& y_pred, int axis = -1);
// Concordance correlation: twice the covariance, divided by the sum of both variances and the
// squared difference of the means.
Tensor concordance_correlation(const Tensor& y_true, const Tensor& y_pred, int axis = -1);

}  // namespace metrics

// The options of metrics::PearsonCorrelation and metrics::ConcordanceCorrelation, the means of the
// functions above.
template <auto kFunction>
struct CorrelationMetricOptions {
  std::string name = {};          // empty: the class name in snake case
  DType dtype = DType::kFloat32;  // kept for files only
  int axis = -1;                  // axis of a sample's elements

  static constexpr auto kDirection = Metric::Direction::kUp;
  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("axis", self.axis);
  }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return kFunction(y_true, y_pred, axis);
  }
};
using PearsonCorrelationMetric =
    FormulaMetric<"PearsonCorrelation", CorrelationMetricOptions<metrics::pearson_correlation>>;
using ConcordanceCorrelationMetric =
    FormulaMetric<"ConcordanceCorrelation",
                  CorrelationMetricOptions<metrics::concordance_correlation>>;

// The options of metrics::R2Score.
struct R2ScoreMetricOptions {
  std::string name = "r2_score";
  DType dtype = DType::kFloat32;  // kept for files only
  // "uniform_average", "variance_weighted_average", or unset for one number per column.
  std::optional<std::string> class_aggregation = "uniform_average";
  int64_t num_regressors = 0;  // number of independent variables, for the adjusted score; >= 0

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("class_aggregation", self.class_aggregation);
    field("num_regressors", self.num_regressors);
  }
};

// The fraction of the labels' variance that the predictions explain. For each column of y_true and
// y_pred [batch, columns], the score is 1 - (sum of squared errors) / (sum of squared deviations of
// the labels from their mean). If the labels do not vary, the score is 0 if there are errors and,
// as in Keras, NaN if there are none. The score is not adjusted if there are too few samples for
// num_regressors.
class R2ScoreMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "R2Score";  // the name in configs and files
  using Options = R2ScoreMetricOptions;            // the options of the constructor
  // Throws ValueError for options out of range.
  explicit R2ScoreMetric(Options options);
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
// Handles to the metrics, under Keras's names.
using MeanSquaredError = Handle<MeanSquaredErrorMetric>;
using RootMeanSquaredError = Handle<RootMeanSquaredErrorMetric>;
using MeanAbsoluteError = Handle<MeanAbsoluteErrorMetric>;
using MeanAbsolutePercentageError = Handle<MeanAbsolutePercentageErrorMetric>;
using MeanSquaredLogarithmicError = Handle<MeanSquaredLogarithmicErrorMetric>;
using LogCoshError = Handle<LogCoshErrorMetric>;
using CosineSimilarity = Handle<CosineSimilarityMetric>;
using PearsonCorrelation = Handle<PearsonCorrelationMetric>;
using ConcordanceCorrelation = Handle<ConcordanceCorrelationMetric>;
using R2Score = Handle<R2ScoreMetric>;
}  // namespace metrics

}  // namespace keel
