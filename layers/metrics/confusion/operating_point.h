// Metrics at an operating point: the best value of one rate subject to a minimum of another rate.
//
// Rates are computed at num_thresholds thresholds in [0, 1], or at 0.5 if num_thresholds is 1. The
// result is the greatest dependent rate among the thresholds at which the constrained rate is at
// least the given value, or 0 if there is no such threshold.
#pragma once

#include <utility>

#include <keel/layers/metrics/confusion/confusion.h>

namespace keel {

// A rate of decisions at a threshold.
enum class DecisionRate {
  kPrecision,   // tp / (tp + fp)
  kRecall,      // tp / (tp + fn), which is also called sensitivity
  kSpecificity  // tn / (tn + fp)
};

// The fields that come first in the options of the metrics below.
constexpr void operating_point_fields(auto& self, auto&& field) {
  metric_fields(self, field);
  field("class_id", self.class_id);
  field("num_thresholds", self.num_thresholds);
}

// The options of metrics::SensitivityAtSpecificity.
struct SensitivityAtSpecificityMetricOptions {
  std::string name = "sensitivity_at_specificity";
  DType dtype = DType::kFloat32;         // kept for files only
  double specificity = 0.5;              // the minimum, in [0, 1]; Keras has no default
  int64_t num_thresholds = 200;          // > 0
  std::optional<int64_t> class_id = {};  // only this column of y_pred and y_true

  static constexpr void fields(auto& self, auto&& field) {
    operating_point_fields(self, field);
    field("specificity", self.specificity);
  }
  // Returns the name and the value of the minimum.
  std::pair<const char*, double> minimum() const { return {"specificity", specificity}; }
};

// The options of metrics::SpecificityAtSensitivity.
struct SpecificityAtSensitivityMetricOptions {
  std::string name = "specificity_at_sensitivity";
  DType dtype = DType::kFloat32;         // kept for files only
  double sensitivity = 0.5;              // the minimum, in [0, 1]; Keras has no default
  int64_t num_thresholds = 200;          // > 0
  std::optional<int64_t> class_id = {};  // only this column of y_pred and y_true

  static constexpr void fields(auto& self, auto&& field) {
    operating_point_fields(self, field);
    field("sensitivity", self.sensitivity);
  }
  // Returns the name and the value of the minimum.
  std::pair<const char*, double> minimum() const { return {"sensitivity", sensitivity}; }
};

// The options of metrics::PrecisionAtRecall.
struct PrecisionAtRecallMetricOptions {
  std::string name = "precision_at_recall";
  DType dtype = DType::kFloat32;         // kept for files only
  double recall = 0.5;                   // the minimum, in [0, 1]; Keras has no default
  int64_t num_thresholds = 200;          // > 0
  std::optional<int64_t> class_id = {};  // only this column of y_pred and y_true

  static constexpr void fields(auto& self, auto&& field) {
    operating_point_fields(self, field);
    field("recall", self.recall);
  }
  // Returns the name and the value of the minimum.
  std::pair<const char*, double> minimum() const { return {"recall", recall}; }
};

// The options of metrics::RecallAtPrecision.
struct RecallAtPrecisionMetricOptions {
  std::string name = "recall_at_precision";
  DType dtype = DType::kFloat32;         // kept for files only
  double precision = 0.5;                // the minimum, in [0, 1]; Keras has no default
  int64_t num_thresholds = 200;          // > 0
  std::optional<int64_t> class_id = {};  // only this column of y_pred and y_true

  static constexpr void fields(auto& self, auto&& field) {
    operating_point_fields(self, field);
    field("precision", self.precision);
  }
  // Returns the name and the value of the minimum.
  std::pair<const char*, double> minimum() const { return {"precision", precision}; }
};

// Base class of the metrics below.
class OperatingPointMetric : public ConfusionMetric {
 public:
  Direction direction() const override { return Direction::kUp; }

 protected:
  // For a class with these options.
  template <class Options>
  OperatingPointMetric(const char* class_name, const Options& options, DecisionRate constrained,
                       DecisionRate dependent)
      : OperatingPointMetric(class_name, options.name, options.num_thresholds, options.class_id,
                             options.minimum(), constrained, dependent) {}

 private:
  OperatingPointMetric(const char* class_name, const std::string& name, int64_t num_thresholds,
                       std::optional<int64_t> class_id, std::pair<const char*, double> minimum,
                       DecisionRate constrained, DecisionRate dependent);
  Tensor compute(std::span<const double> state) const override;

  const float minimum_;
  const DecisionRate constrained_, dependent_;
};

// The greatest kDependent where kConstrained is at least the minimum that the options contain.
// Throws ValueError unless num_thresholds > 0 and the minimum is in [0, 1].
template <ClassName kName, class OptionsType, DecisionRate kConstrained, DecisionRate kDependent>
class RateAtRateMetric final : public OperatingPointMetric {
 public:
  static constexpr const char* kClassName = kName.text;  // the name in configs and files
  using Options = OptionsType;                           // the options of the constructor
  explicit RateAtRateMetric(Options options)
      : OperatingPointMetric(kClassName, options, kConstrained, kDependent),
        options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};
using SensitivityAtSpecificityMetric =
    RateAtRateMetric<"SensitivityAtSpecificity", SensitivityAtSpecificityMetricOptions,
                     DecisionRate::kSpecificity, DecisionRate::kRecall>;
using SpecificityAtSensitivityMetric =
    RateAtRateMetric<"SpecificityAtSensitivity", SpecificityAtSensitivityMetricOptions,
                     DecisionRate::kRecall, DecisionRate::kSpecificity>;
using PrecisionAtRecallMetric =
    RateAtRateMetric<"PrecisionAtRecall", PrecisionAtRecallMetricOptions, DecisionRate::kRecall,
                     DecisionRate::kPrecision>;
using RecallAtPrecisionMetric =
    RateAtRateMetric<"RecallAtPrecision", RecallAtPrecisionMetricOptions, DecisionRate::kPrecision,
                     DecisionRate::kRecall>;

namespace metrics {
// Handles to the metrics, under Keras's names.
using SensitivityAtSpecificity = Handle<SensitivityAtSpecificityMetric>;
using SpecificityAtSensitivity = Handle<SpecificityAtSensitivityMetric>;
using PrecisionAtRecall = Handle<PrecisionAtRecallMetric>;
using RecallAtPrecision = Handle<RecallAtPrecisionMetric>;
}  // namespace metrics

}  // namespace keel
