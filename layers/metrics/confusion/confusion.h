// Metrics of decisions at thresholds: precision, recall, and the confusion counts they are derived
// from.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <keel/layers/axes.h>
#include <keel/layers/metrics/mean.h>

namespace keel {

class ThresholdHistogram;
struct ConfusionCounts;

// Base class of metrics derived from confusion counts. A prediction is positive if it is above a
// threshold, and a label is positive if it is not 0. Every element of y_pred counts, with its
// weight. When updated, throws ValueError if class_id or top_k is out of range for the predictions.
class ConfusionMetric : public Metric {
 protected:
  // Restricts the last axis of y_pred.
  struct Selection {
    std::optional<int64_t> top_k = {};     // only the top_k greatest predictions may be positive
    std::optional<int64_t> class_id = {};  // only this column counts
  };
  // For a class of this name; an empty `name` means the class name in snake case.
  ConfusionMetric(const char* class_name, const std::string& name,
                  const std::vector<double>& thresholds, Selection selection);

  // Returns the confusion counts at each threshold.
  ConfusionCounts counts(std::span<const double> state) const;
  // Returns one value per threshold, as a scalar if there is only one.
  static Tensor by_threshold(const std::vector<double>& values);

 private:
  ConfusionMetric(const char* class_name, const std::string& name,
                  std::shared_ptr<const ThresholdHistogram> histogram, Selection selection);
  void accumulate(const MetricBatch& batch, std::span<double> state) const final;

  const std::shared_ptr<const ThresholdHistogram> histogram_;
  const Selection selection_;
};

// The options of metrics::Precision and metrics::Recall.
struct ThresholdMetricOptions {
  std::string name = {};          // empty: the class name in snake case
  DType dtype = DType::kFloat32;  // kept for files only
  // Thresholds in [0, 1]. If unset, 0.5, or none if top_k is set. Pass several as ScalarOrList{0.2,
  // 0.5}.
  std::optional<ScalarOrList> thresholds = {};
  std::optional<int64_t> top_k = {};     // only the top_k greatest of a row may be positive
  std::optional<int64_t> class_id = {};  // only this column of y_pred and y_true

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("thresholds", self.thresholds);
    field("top_k", self.top_k);
    field("class_id", self.class_id);
  }
};

// Base class of Precision and Recall. Throws ValueError for a threshold out of range.
class ThresholdMetric : public ConfusionMetric {
 public:
  using Options = ThresholdMetricOptions;  // the options of the constructor
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 protected:
  // The denominator of the ratio.
  enum class Other {
    kPrediction,  // all positive predictions
    kLabel        // all positive labels
  };
  // For a class of this name.
  ThresholdMetric(const char* class_name, Other other, Options options);

 private:
  Tensor compute(std::span<const double> state) const override;

  const Other other_;
  const Options options_;
};

// Precision at each threshold: true positives divided by all positive predictions, or 0 if there
// are none.
class PrecisionMetric final : public ThresholdMetric {
 public:
  static constexpr char kClassName[] = "Precision";  // the name in configs and files
  explicit PrecisionMetric(Options options)
      : ThresholdMetric(kClassName, Other::kPrediction, std::move(options)) {}
};

// Recall at each threshold: true positives divided by all positive labels, or 0 if there are none.
class RecallMetric final : public ThresholdMetric {
 public:
  static constexpr char kClassName[] = "Recall";  // the name in configs and files
  explicit RecallMetric(Options options)
      : ThresholdMetric(kClassName, Other::kLabel, std::move(options)) {}
};

// A confusion count, a sum of weights.
enum class ConfusionCount {
  kTruePositives,   // positive labels with positive predictions
  kTrueNegatives,   // negative labels with negative predictions
  kFalsePositives,  // negative labels with positive predictions
  kFalseNegatives   // positive labels with negative predictions
};

// Base class of the four confusion counts at each threshold. Throws ValueError for a threshold out
// of range.
class ConfusionCountMetric : public ConfusionMetric {
 public:
  // The options of the constructor.
  struct Options {
    std::string name = {};                        // empty: the class name in snake case
    DType dtype = DType::kFloat32;                // kept for files only
    std::optional<ScalarOrList> thresholds = {};  // in [0, 1]; unset: 0.5

    // Lists the options.
    static constexpr void fields(auto& self, auto&& field) {
      metric_fields(self, field);
      field("thresholds", self.thresholds);
    }
  };
  Config get_config() const override { return to_config(options_); }

 protected:
  // For a class of this name.
  ConfusionCountMetric(const char* class_name, ConfusionCount count, Options options);

 private:
  Tensor compute(std::span<const double> state) const override;

  const ConfusionCount count_;
  const Options options_;
};

// The count kCount at each threshold.
template <ClassName kName, ConfusionCount kCount>
class CountMetric final : public ConfusionCountMetric {
 public:
  static constexpr const char* kClassName = kName.text;  // the name in configs and files
  explicit CountMetric(Options options)
      : ConfusionCountMetric(kClassName, kCount, std::move(options)) {}
};
using TruePositivesMetric = CountMetric<"TruePositives", ConfusionCount::kTruePositives>;
using TrueNegativesMetric = CountMetric<"TrueNegatives", ConfusionCount::kTrueNegatives>;
using FalsePositivesMetric = CountMetric<"FalsePositives", ConfusionCount::kFalsePositives>;
using FalseNegativesMetric = CountMetric<"FalseNegatives", ConfusionCount::kFalseNegatives>;

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
