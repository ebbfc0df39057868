// Correlation of the labels and predictions of a sample.
#pragma once

#include <keel/layers/metrics/mean.h>

namespace keel {

// The options of PearsonCorrelationMetric.
struct PearsonCorrelationMetricOptions {
  std::string name = "pearson_correlation";
  DType dtype = DType::kFloat32;
  int axis = -1;  // axis of a sample's elements

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("axis", self.axis);
  }
};

// Pearson correlation: the mean of the product of labels and predictions, after both are
// standardized to mean 0 and variance 1. A sample consists of the elements along `axis`.
class PearsonCorrelationMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "PearsonCorrelation";
  using Options = PearsonCorrelationMetricOptions;
  explicit PearsonCorrelationMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of ConcordanceCorrelationMetric.
struct ConcordanceCorrelationMetricOptions {
  std::string name = "concordance_correlation";
  DType dtype = DType::kFloat32;
  int axis = -1;  // axis of a sample's elements

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("axis", self.axis);
  }
};

// Concordance correlation: twice the covariance, divided by the sum of both variances and the
// squared difference of the means.
class ConcordanceCorrelationMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "ConcordanceCorrelation";
  using Options = ConcordanceCorrelationMetricOptions;
  explicit ConcordanceCorrelationMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using PearsonCorrelation = Handle<PearsonCorrelationMetric>;
using ConcordanceCorrelation = Handle<ConcordanceCorrelationMetric>;
}  // namespace metrics

}  // namespace keel
