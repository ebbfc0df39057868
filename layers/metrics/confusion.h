// Precision and recall at a threshold.
#pragma once

#include <optional>

#include "layers/metrics/metric.h"

namespace keel {

struct ThresholdMetricOptions {
  std::string name = {};  // empty: the class name in lower case
  DType dtype = DType::kFloat32;
  std::optional<double> thresholds = {};  // in [0, 1]; unset: 0.5. One only, unlike in Keras
  std::optional<int64_t> top_k = {};      // NotImplementedError if set
  std::optional<int64_t> class_id = {};   // only this column of y_pred and y_true

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("thresholds", self.thresholds);
    field("top_k", self.top_k);
    field("class_id", self.class_id);
  }
};

// Base of both. A prediction is positive above the threshold, a label if it is not 0. Every
// element of y_pred counts, with its weight. ValueError for a threshold out of range, and, when
// updated, for a class_id that predictions do not have.
// State: what is positive in both, and what is so in `other` only.
class ThresholdMetric : public Metric {
 public:
  using Options = ThresholdMetricOptions;
  Config get_config() const override { return to_config(options_); }

 protected:
  enum class Other { kPrediction, kLabel };
  ThresholdMetric(const char* class_name, const char* name, Other other, Options options);

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  double compute(std::span<const double> state) const override;

  const Other other_;
  const Options options_;
};

// True positives out of all that is predicted positive; 0 if nothing is.
class PrecisionMetric final : public ThresholdMetric {
 public:
  static constexpr char kClassName[] = "Precision";
  explicit PrecisionMetric(Options options)
      : ThresholdMetric(kClassName, "precision", Other::kPrediction, std::move(options)) {}
};

// True positives out of all that is labelled positive; 0 if nothing is.
class RecallMetric final : public ThresholdMetric {
 public:
  static constexpr char kClassName[] = "Recall";
  explicit RecallMetric(Options options)
      : ThresholdMetric(kClassName, "recall", Other::kLabel, std::move(options)) {}
};

namespace metrics {
using Precision = Handle<PrecisionMetric>;
using Recall = Handle<RecallMetric>;
}  // namespace metrics

}  // namespace keel
