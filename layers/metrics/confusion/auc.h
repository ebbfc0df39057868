// AUC: the area under the ROC or the precision-recall curve, from a histogram of predictions.
#pragma once

#include <optional>
#include <vector>

#include <keel/layers/metrics/confusion/threshold_histogram.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

struct AUCMetricOptions {
  std::string name = "auc";
  DType dtype = DType::kFloat32;
  int64_t num_thresholds = 200;                    // > 1
  std::string curve = "ROC";                       // or "PR"
  std::string summation_method = "interpolation";  // or "minoring", "majoring"
  bool multi_label = false;  // a curve for each column of y_pred [batch, labels]; their mean
  std::optional<int64_t> num_labels =
      {};  // columns, with multi_label only; unset: the first batch's
  // Of each column, >= 0: of its area with multi_label, else of its elements.
  std::optional<std::vector<double>> label_weights = {};
  bool from_logits = false;  // predictions pass a sigmoid first
  // In [0, 1]: the curve is taken at these, 0 and 1 instead.
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

// The curve is known at thresholds -1e-7, 1 / (n - 1), ..., (n - 2) / (n - 1), 1 + 1e-7, so that
// ranks within one n-th of each other count as ties. Every element of y_pred counts; a label is
// positive if it is not 0. A batch costs its size; the state is 2 (num_thresholds + 1) sums, for
// each column with multi_label.
// ValueError, when updated, for predictions outside [0, 1], and for another number of columns than
// num_labels or label_weights have.
class AUCMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "AUC";
  using Options = AUCMetricOptions;
  explicit AUCMetric(Options options);  // ValueError for options out of range
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
using AUC = Handle<AUCMetric>;
}

}  // namespace keel
