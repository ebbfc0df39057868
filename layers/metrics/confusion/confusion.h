// Metrics of right and wrong decisions at thresholds: precision, recall and the counts they are
// made of.
#pragma once

#include <optional>

#include <keel/layers/axes.h>
#include <keel/layers/metrics/confusion/threshold_histogram.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

// Base of metrics made of confusion counts. A prediction is positive above a threshold, a label if
// it is not 0. Every element of y_pred counts, with its weight. ValueError, when updated, for a
// class_id or top_k that predictions do not have.
class ConfusionMetric : public Metric {
 protected:
  // Of the last axis of y_pred: only its greatest top_k may be positive; only column class_id
  // counts.
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
  // A scalar if there is one threshold.
  static Tensor by_threshold(const std::vector<double>& values);

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const final;

  const ThresholdHistogram histogram_;
  const Selection selection_;
};

struct ThresholdMetricOptions {
  std::string name = {};  // empty: the class name in lower case
  DType dtype = DType::kFloat32;
  // In [0, 1]; unset: 0.5, or none if there is top_k. Several: Numbers{0.2, 0.5}.
  std::optional<ScalarOrList> thresholds = {};
  std::optional<int64_t> top_k = {};     // only the greatest so many of a row may be positive
  std::optional<int64_t> class_id = {};  // only this column of y_pred and y_true

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("thresholds", self.thresholds);
    field("top_k", self.top_k);
    field("class_id", self.class_id);
  }
};

// Base of Precision and Recall. ValueError for a threshold out of range.
class ThresholdMetric : public ConfusionMetric {
 public:
  using Options = ThresholdMetricOptions;
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 protected:
  enum class Other { kPrediction, kLabel };
  ThresholdMetric(const char* class_name, const char* name, Other other, Options options);

 private:
  Tensor compute(std::span<const double> state) const override;

  const Other other_;
  const Options options_;
};

// True positives out of all that is predicted positive; 0 if nothing is. At each threshold.
class PrecisionMetric final : public ThresholdMetric {
 public:
  static constexpr char kClassName[] = "Precision";
  explicit PrecisionMetric(Options options)
      : ThresholdMetric(kClassName, "precision", Other::kPrediction, std::move(options)) {}
};

// True positives out of all that is labelled positive; 0 if nothing is. At each threshold.
class RecallMetric final : public ThresholdMetric {
 public:
  static constexpr char kClassName[] = "Recall";
  explicit RecallMetric(Options options)
      : ThresholdMetric(kClassName, "recall", Other::kLabel, std::move(options)) {}
};

struct ConfusionCountMetricOptions {
  std::string name = {};  // empty: the class name in snake case
  DType dtype = DType::kFloat32;
  std::optional<ScalarOrList> thresholds = {};  // in [0, 1]; unset: 0.5

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("thresholds", self.thresholds);
  }
};

// Base of the four counts, summed by weight at each threshold. ValueError for a threshold out of
// range.
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

class TruePositivesMetric final : public ConfusionCountMetric {
 public:
  static constexpr char kClassName[] = "TruePositives";
  explicit TruePositivesMetric(Options options)
      : ConfusionCountMetric(kClassName, "true_positives", &ConfusionCounts::tp,
                             std::move(options)) {}
};

class TrueNegativesMetric final : public ConfusionCountMetric {
 public:
  static constexpr char kClassName[] = "TrueNegatives";
  explicit TrueNegativesMetric(Options options)
      : ConfusionCountMetric(kClassName, "true_negatives", &ConfusionCounts::tn,
                             std::move(options)) {}
};

class FalsePositivesMetric final : public ConfusionCountMetric {
 public:
  static constexpr char kClassName[] = "FalsePositives";
  explicit FalsePositivesMetric(Options options)
      : ConfusionCountMetric(kClassName, "false_positives", &ConfusionCounts::fp,
                             std::move(options)) {}
};

class FalseNegativesMetric final : public ConfusionCountMetric {
 public:
  static constexpr char kClassName[] = "FalseNegatives";
  explicit FalseNegativesMetric(Options options)
      : ConfusionCountMetric(kClassName, "false_negatives", &ConfusionCounts::fn,
                             std::move(options)) {}
};

namespace metrics {
using Precision = Handle<PrecisionMetric>;
using Recall = Handle<RecallMetric>;
using TruePositives = Handle<TruePositivesMetric>;
using TrueNegatives = Handle<TrueNegativesMetric>;
using FalsePositives = Handle<FalsePositivesMetric>;
using FalseNegatives = Handle<FalseNegativesMetric>;
}  // namespace metrics

}  // namespace keel
