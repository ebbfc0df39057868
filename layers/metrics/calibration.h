// Metrics of predicted click probabilities: their quality and their calibration.
//
// Every element of y_pred counts, with its sample weight. Labels are in [0, 1].
#pragma once

#include <keel/layers/metrics/metric.h>

namespace keel {

// The options of NormalizedEntropyMetric.
struct NormalizedEntropyMetricOptions {
  std::string name = "normalized_entropy";
  DType dtype = DType::kFloat32;
  bool from_logits = false;  // true if predictions are log odds

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
  }
};

// Computes the mean log loss divided by the log loss of always predicting the mean label q (He et
// al. 2014, "Practical lessons from predicting clicks on ads at Facebook"):
//   mean(-y log p - (1 - y) log(1 - p)) / (-q log q - (1 - q) log(1 - q))
// Values below 1 are better than predicting the mean. The clip range of probabilities is
// [1e-7, 1 - 1e-7]. The result is 0 where the quotient is undefined: without samples, and if all
// labels are 0 or all are 1.
class NormalizedEntropyMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "NormalizedEntropy";
  using Options = NormalizedEntropyMetricOptions;
  explicit NormalizedEntropyMetric(Options options);
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  bool uses_mask() const override { return true; }
  const Options options_;
};

// The options of CalibrationMetric.
struct CalibrationMetricOptions {
  std::string name = "calibration";
  DType dtype = DType::kFloat32;
  bool from_logits = false;  // true if predictions are log odds

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
  }
};

// Computes the mean prediction divided by the mean label (He et al. 2014): 1 if there are as many
// clicks as predicted, and above 1 if there are fewer. The result is 0 if no label is positive.
class CalibrationMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "Calibration";
  using Options = CalibrationMetricOptions;
  explicit CalibrationMetric(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  bool uses_mask() const override { return true; }
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using NormalizedEntropy = Handle<NormalizedEntropyMetric>;
using Calibration = Handle<CalibrationMetric>;
}  // namespace metrics

}  // namespace keel
