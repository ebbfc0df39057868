// Metrics of decisions at thresholds: precision, recall, and the confusion counts they are derived
// from.
#pragma once

#include <optional>

#include <keel/layers/axes.h>
#include <keel/layers/metrics/confusion/threshold_histogram.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

// Base class of metrics derived from confusion counts. A prediction is positive if it is above a
// threshold, and a label is positive if it is not 0. Every element of y_pred counts, with its
// weight. When updated, throws ValueError if class_id or top_k is out of range for the predictions.
class ConfusionMetric : public Metric {
 protected:
  // Restricts the last axis of y_pred: only the top_k greatest predictions may be positive, and
  // only column class_id counts.
  struct Selection {
    std::optional<int64_t> top_k = {}, class_id = {};
  };
  template <class Options>
  ConfusionMetric(const char* class_name, const Options& options, ThresholdHistogram histogram,
                  Selection selection)
      : Metric(class_name, options, histogram.state_size()),
        histogram_(std::move(histogram)),
        selection_(selection) {}

  ConfusionCounts counts(std::span<const double> state) const { return histogram_.counts(state); }
  // Returns one value per threshold, as a scalar if there is only one.
  static Tensor by_threshold(const std::vector<double>& values);

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const final;

  const ThresholdHistogram histogram_;
  const Selection selection_;
};

// The options of ThresholdMetric.
struct ThresholdMetricOptions {
  std::string name = {};  // empty: the class name in lower case
  DType dtype = DType::kFloat32;
  // Thresholds in [0, 1]. If unset, 0.5, or none if top_k is set. Pass several as ScalarOrList{0.2,
  // 0.5}.
  std::optional<ScalarOrList> thresholds = {};
  std::optional<int64_t> top_k = {};     // only the top_k greatest of a row may be positive
  std::optional<int64_t> class_id = {};  // only this column of y_pred and y_true

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("thresholds", self.thresholds);
    field("top_k", self.top_k);
    field("class_id", self.class_id);
  }
};

// Base class of Precision and Recall. Throws ValueError for a threshold out of range.
class ThresholdMetric : public ConfusionMetric {
 public:
  using Options = ThresholdMetricOptions;
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 protected:
  // The denominator of the ratio: all positive predictions, or all positive labels.
  enum class Other { kPrediction, kLabel };
  ThresholdMetric(const char* class_name, const char* name, Other other, Options options);

 private:
  Tensor compute(std::span<const double> state) const override;

  const Other other_;
  const Options options_;
};

// Precision at each threshold: true positives divided by all positive predictions, or 0 if there
// are none.
class PrecisionMetric final : public ThresholdMetric {
 public:
  static constexpr char kClassName[] = "Precision";
  explicit PrecisionMetric(Options options)
      : ThresholdMetric(kClassName, "precision", Other::kPrediction, std::move(options)) {}
};

// Recall at each threshold: true positives divided by all positive labels, or 0 if there are none.
class RecallMetric final : public ThresholdMetric {
 public:
  static constexpr char kClassName[] = "Recall";
  explicit RecallMetric(Options options)
      : ThresholdMetric(kClassName, "recall", Other::kLabel, std::move(options)) {}
};

// The options of ConfusionCountMetric.
struct ConfusionCountMetricOptions {
  std::string name = {};  // empty: the class name in snake case
  DType dtype = DType::kFloat32;
  std::optional<ScalarOrList> thresholds = {};  // in [0, 1]; unset: 0.5

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("thresholds", self.thresholds);
  }
};

// Base class of the four confusion counts, which are sums of weights at each threshold. Throws
// ValueError for a threshold out of range.
class ConfusionCountMetric : public ConfusionMetric {
 public:
  using Options = ConfusionCountMetricOptions;
  Config get_config() const override { return to_config(options_); }

 protected:
  using Count = std::vector<double> ConfusionCounts::*;
  ConfusionCountMetric(const char* class_name, const char* name, Count count, Options options);

 private:
  Tensor compute(std::span<const double> state) const override;

  const Count count_;
  const Options options_;
};

// Computes the total weight of positive labels with positive predictions.
class TruePositivesMetric final : public ConfusionCountMetric {
 public:
  static constexpr char kClassName[] = "TruePositives";
  explicit TruePositivesMetric(Options options)
      : ConfusionCountMetric(kClassName, "true_positives", &ConfusionCounts::tp,
                             std::move(options)) {}
};

// Computes the total weight of negative labels with negative predictions.
class TrueNegativesMetric final : public ConfusionCountMetric {
 public:
  static constexpr char kClassName[] = "TrueNegatives";
  explicit TrueNegativesMetric(Options options)
      : ConfusionCountMetric(kClassName, "true_negatives", &ConfusionCounts::tn,
                             std::move(options)) {}
};

// Computes the total weight of negative labels with positive predictions.
class FalsePositivesMetric final : public ConfusionCountMetric {
 public:
  static constexpr char kClassName[] = "FalsePositives";
  explicit FalsePositivesMetric(Options options)
      : ConfusionCountMetric(kClassName, "false_positives", &ConfusionCounts::fp,
                             std::move(options)) {}
};

// Computes the total weight of positive labels with negative predictions.
class FalseNegativesMetric final : public ConfusionCountMetric {
 public:
  static constexpr char kClassName[] = "FalseNegatives";
  explicit FalseNegativesMetric(Options options)
      : ConfusionCountMetric(kClassName, "false_negatives", &ConfusionCounts::fn,
                             std::move(options)) {}
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using Precision = Handle<PrecisionMetric>;
using Recall = Handle<RecallMetric>;
using TruePositives = Handle<TruePositivesMetric>;
using TrueNegatives = Handle<TrueNegativesMetric>;
using FalsePositives = Handle<FalsePositivesMetric>;
using FalseNegatives = Handle<FalseNegativesMetric>;
}  // namespace metrics

}  // namespace keel
