// Metrics at an operating point: the best value of one rate subject to a minimum of another rate.
#pragma once

#include <keel/layers/metrics/confusion/confusion.h>

namespace keel {

// Base class of the four metrics. Rates are computed at num_thresholds thresholds in [0, 1], or at
// 0.5 if num_thresholds is 1. The result is the greatest dependent rate among the thresholds at
// which the constrained rate is at least `value`, or 0 if there is no such threshold.
class OperatingPointMetric : public ConfusionMetric {
 public:
  Direction direction() const override { return Direction::kUp; }

 protected:
  // Throws ValueError unless num_thresholds > 0 and 0 <= value <= 1. `what` names the value.
  template <class Options>
  OperatingPointMetric(const char* class_name, const Options& options, const char* what,
                       double value)
      : ConfusionMetric(class_name, options,
                        histogram_of(class_name, options.num_thresholds, what, value),
                        {.class_id = options.class_id}),
        value_(static_cast<float>(value)) {}

  // The two rates at one threshold.
  struct Rates {
    double constrained = 0, dependent = 0;
  };
  // Computes the rates at one threshold from its confusion counts.
  virtual Rates rates(double tp, double fp, double tn, double fn) const = 0;

 private:
  static ThresholdHistogram histogram_of(const char* caller, int64_t num_thresholds,
                                         const char* what, double value);
  Tensor compute(std::span<const double> state) const override;

  const float value_;
};

// The options of SensitivityAtSpecificityMetric.
struct SensitivityAtSpecificityMetricOptions {
  std::string name = "sensitivity_at_specificity";
  DType dtype = DType::kFloat32;
  double specificity = 0.5;              // in [0, 1]; Keras has no default
  int64_t num_thresholds = 200;          // > 0
  std::optional<int64_t> class_id = {};  // only this column of y_pred and y_true

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("class_id", self.class_id);
    field("num_thresholds", self.num_thresholds);
    field("specificity", self.specificity);
  }
};

// Computes the greatest sensitivity, tp / (tp + fn), where specificity, tn / (tn + fp), is at least
// the given value.
class SensitivityAtSpecificityMetric final : public OperatingPointMetric {
 public:
  static constexpr char kClassName[] = "SensitivityAtSpecificity";
  using Options = SensitivityAtSpecificityMetricOptions;
  explicit SensitivityAtSpecificityMetric(Options options)
      : OperatingPointMetric(kClassName, options, "specificity", options.specificity),
        options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Rates rates(double tp, double fp, double tn, double fn) const override;
  const Options options_;
};

// The options of SpecificityAtSensitivityMetric.
struct SpecificityAtSensitivityMetricOptions {
  std::string name = "specificity_at_sensitivity";
  DType dtype = DType::kFloat32;
  double sensitivity = 0.5;  // in [0, 1]; Keras has no default
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = {};

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("class_id", self.class_id);
    field("num_thresholds", self.num_thresholds);
    field("sensitivity", self.sensitivity);
  }
};

// Computes the greatest specificity where sensitivity is at least the given value.
class SpecificityAtSensitivityMetric final : public OperatingPointMetric {
 public:
  static constexpr char kClassName[] = "SpecificityAtSensitivity";
  using Options = SpecificityAtSensitivityMetricOptions;
  explicit SpecificityAtSensitivityMetric(Options options)
      : OperatingPointMetric(kClassName, options, "sensitivity", options.sensitivity),
        options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Rates rates(double tp, double fp, double tn, double fn) const override;
  const Options options_;
};

// The options of PrecisionAtRecallMetric.
struct PrecisionAtRecallMetricOptions {
  std::string name = "precision_at_recall";
  DType dtype = DType::kFloat32;
  double recall = 0.5;  // in [0, 1]; Keras has no default
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = {};

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("class_id", self.class_id);
    field("num_thresholds", self.num_thresholds);
    field("recall", self.recall);
  }
};

// Computes the greatest precision, tp / (tp + fp), where recall, tp / (tp + fn), is at least the
// given value.
class PrecisionAtRecallMetric final : public OperatingPointMetric {
 public:
  static constexpr char kClassName[] = "PrecisionAtRecall";
  using Options = PrecisionAtRecallMetricOptions;
  explicit PrecisionAtRecallMetric(Options options)
      : OperatingPointMetric(kClassName, options, "recall", options.recall),
        options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Rates rates(double tp, double fp, double tn, double fn) const override;
  const Options options_;
};

// The options of RecallAtPrecisionMetric.
struct RecallAtPrecisionMetricOptions {
  std::string name = "recall_at_precision";
  DType dtype = DType::kFloat32;
  double precision = 0.5;  // in [0, 1]; Keras has no default
  int64_t num_thresholds = 200;
  std::optional<int64_t> class_id = {};

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("class_id", self.class_id);
    field("num_thresholds", self.num_thresholds);
    field("precision", self.precision);
  }
};

// Computes the greatest recall where precision is at least the given value.
class RecallAtPrecisionMetric final : public OperatingPointMetric {
 public:
  static constexpr char kClassName[] = "RecallAtPrecision";
  using Options = RecallAtPrecisionMetricOptions;
  explicit RecallAtPrecisionMetric(Options options)
      : OperatingPointMetric(kClassName, options, "precision", options.precision),
        options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Rates rates(double tp, double fp, double tn, double fn) const override;
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using SensitivityAtSpecificity = Handle<SensitivityAtSpecificityMetric>;
using SpecificityAtSensitivity = Handle<SpecificityAtSensitivityMetric>;
using PrecisionAtRecall = Handle<PrecisionAtRecallMetric>;
using RecallAtPrecision = Handle<RecallAtPrecisionMetric>;
}  // namespace metrics

}  // namespace keel
