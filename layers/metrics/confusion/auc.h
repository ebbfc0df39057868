// Areas under curves: AUC, approximated by a histogram of predictions, and the exact areas under
// the ROC curve of all predictions (ExactAUC) and of those of each user (GAUC).
//
// Every element of y_pred counts. A label is positive if it is not 0.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <keel/layers/metrics/metric.h>

namespace keel {

class ReplicaExamples;
class ThresholdHistogram;
struct ConfusionCounts;
struct ScoredExamples;

// The options of AUCMetric.
struct AUCMetricOptions {
  std::string name = "auc";
  DType dtype = DType::kFloat32;                   // kept for files only
  int64_t num_thresholds = 200;                    // > 1
  std::string curve = "ROC";                       // or "PR"
  std::string summation_method = "interpolation";  // or "minoring", "majoring"
  bool multi_label = false;  // mean over one curve per column of y_pred [batch, labels]
  std::optional<int64_t> num_labels = {};  // for multi_label; unset: the columns of the first batch
  // Weights of the columns, >= 0. They apply to the areas with multi_label, else to the elements.
  std::optional<std::vector<double>> label_weights = {};
  bool from_logits = false;  // apply a sigmoid to the predictions first
  // Interior thresholds in [0, 1], which replace num_thresholds; 0 and 1 are added.
  std::optional<std::vector<double>> thresholds = {};

  static constexpr void fields(auto& self, auto&& field) {
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

// The area under the ROC or precision-recall curve. The curve is sampled at the thresholds -1e-7, 1
// / (n - 1), ..., (n - 2) / (n - 1), 1 + 1e-7, where n is num_thresholds. Predictions that fall
// between the same two thresholds count as ties. An update takes time proportional to the batch.
// The state has 2 (num_thresholds + 1) sums, per column with multi_label. When updated, throws
// ValueError for predictions outside of [0, 1], and if the number of columns differs from that of
// num_labels or label_weights.
class AUCMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "AUC";  // the name in configs and files
  using Options = AUCMetricOptions;            // the options of the constructor
  explicit AUCMetric(Options options);         // Throws ValueError for options out of range.
  Config get_config() const override;
  Direction direction() const override { return Direction::kUp; }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  int64_t state_size_of(const MetricBatch& batch) const override;
  void check_columns(const Tensor& prediction) const;
  double area(const ConfusionCounts& counts) const;

  const Options options_;
  const std::shared_ptr<const ThresholdHistogram> histogram_;
};

// Base class of ExactAUC and GAUC. Throws ValueError for negative weights when updated.
//
// The area under the ROC curve is the fraction of pairs of a positive and a negative example in
// which the positive one has the greater prediction. Pairs of equal predictions count half (Hanley
// and McNeil 1982). Each pair is weighted by the product of its weights.
//
// The metrics store all predictions since the last reset: 8 bytes per prediction with a nonzero
// weight, or 16 for GAUC, in the process that evaluated it. Computing a result temporarily takes
// some 32 bytes per prediction of all processes, in each process, and O(n log n) time. Logs
// therefore contain the metric at the end of an epoch only, not after each batch. Backups of
// training in the middle of an epoch do not contain the predictions: after a restore, the epoch's
// result covers only the batches that follow.
class ScoredMetric : public Metric {
 public:
  // The options of both metrics.
  struct Options {
    std::string name = {};          // empty: the class name in snake case
    DType dtype = DType::kFloat32;  // kept for files only

    // Lists the options.
    static constexpr void fields(auto& self, auto&& field) { metric_fields(self, field); }
  };
  ~ScoredMetric() override;
  Config get_config() const final { return to_config(options_); }
  Direction direction() const final { return Direction::kUp; }
  void reset_state() final;
  void rebuild() final;
  bool costly_result() const final { return true; }

 protected:
  // Constructs a metric whose class has this name.
  ScoredMetric(const char* class_name, const Options& options);

  // Computes the area of the examples of all replicas.
  virtual double area(const ScoredExamples& examples) const = 0;
  // Stores the examples with weight > 0. `positive` has one element per example; `group` may be
  // empty.
  void keep(const MetricBatch& batch, const std::vector<bool>& positive,
            std::span<const int64_t> group) const;

 private:
  Tensor compute(std::span<const double>) const final;
  bool uses_mask() const final { return true; }
  const Options options_;
  // The examples that update_state() stores, separately for each replica.
  std::unique_ptr<ReplicaExamples> examples_;
};

// The area under the ROC curve, or 0 if there are no positive or no negative examples.
class ExactAUCMetric final : public ScoredMetric {
 public:
  static constexpr char kClassName[] = "ExactAUC";  // the name in configs and files
  explicit ExactAUCMetric(const Options& options) : ScoredMetric(kClassName, options) {}

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  double area(const ScoredExamples& examples) const override;
};

// GAUC: the mean of the users' areas, weighted by their impressions, which are the sums of their
// weights (Zhu et al. 2017, "Optimized cost per click in Taobao display advertising"). Users
// without positive or without negative examples are excluded. The result is 0 if no user remains.
// y_true holds the label and the user of each element of y_pred along an additional last axis:
// [batch, 2] for predictions [batch] or [batch, 1]. Users must be integers (ValueError). Users
// beyond 2^24 require y_true in float64, or in int64 if the labels are integers too (see
// metrics::labels_of_users).
class GAUCMetric final : public ScoredMetric {
 public:
  static constexpr char kClassName[] = "GAUC";  // the name in configs and files
  explicit GAUCMetric(const Options& options) : ScoredMetric(kClassName, options) {}

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  double area(const ScoredExamples& examples) const override;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using AUC = Handle<AUCMetric>;
using ExactAUC = Handle<ExactAUCMetric>;
using GAUC = Handle<GAUCMetric>;

// Combines labels and users of the same shape to the y_true of GAUC: float64 [..., 2]. A last
// dimension of length 1 is dropped first. Throws ValueError if the shapes differ.
Tensor labels_of_users(const Tensor& labels, const Tensor& users);
}  // namespace metrics

}  // namespace keel
