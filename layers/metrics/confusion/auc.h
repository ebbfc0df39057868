// AUC: the area under the ROC or precision-recall curve, approximated by a histogram of
// predictions.
#pragma once

#include <optional>
#include <vector>

#include <keel/layers/metrics/confusion/threshold_histogram.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

// The options of AUCMetric.
struct AUCMetricOptions {
  std::string name = "auc";
  DType dtype = DType::kFloat32;
  int64_t num_thresholds = 200;                    // > 1
  std::string curve = "ROC";                       // or "PR"
  std::string summation_method = "interpolation";  // or "minoring", "majoring"
  bool multi_label = false;  // mean over one curve per column of y_pred [batch, labels]
  std::optional<int64_t> num_labels =
      {};  // number of columns with multi_label; unset: that of the first batch
  // Weights of the columns, >= 0. They apply to the areas with multi_label, else to the elements.
  std::optional<std::vector<double>> label_weights = {};
  bool from_logits = false;  // apply a sigmoid to the predictions first
  // Interior thresholds in [0, 1], which replace num_thresholds; 0 and 1 are added.
  std::optional<std::vector<double>> thresholds = {};

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("num_thresholds", self.num_thresholds);
    field("curve", self.curve);
    field("summation_method", self.summation_method);
    field("multi_label", self.multi_label);
    field("num_labels", self.num_labels);
    field("label_weights", self.label_weights);
    field("from_logits", self.from_logits);
    field("thresholds", self.thresholds);
  }
};

// The curve is sampled at the thresholds -1e-7, 1 / (n - 1), ..., (n - 2) / (n - 1), 1 + 1e-7,
// where n is num_thresholds. Predictions that fall between the same two thresholds count as ties.
// Every element of y_pred counts. A label is positive if it is not 0. An update takes time
// proportional to the batch. The state has 2 (num_thresholds + 1) sums, per column with
// multi_label.
// When updated, throws ValueError for predictions outside of [0, 1], and if the number of columns
// differs from that of num_labels or label_weights.
class AUCMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "AUC";
  using Options = AUCMetricOptions;
  explicit AUCMetric(Options options);  // Throws ValueError for options out of range.
  Config get_config() const override;
  Direction direction() const override { return Direction::kUp; }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  int64_t state_size_of(const MetricBatch& batch) const override;
  void check_columns(const Tensor& prediction) const;
  double area(const ConfusionCounts& counts) const;

  const Options options_;
  const ThresholdHistogram histogram_;
};

namespace metrics {
// A handle to the metric, under Keras's name.
using AUC = Handle<AUCMetric>;
}  // namespace metrics

}  // namespace keel
