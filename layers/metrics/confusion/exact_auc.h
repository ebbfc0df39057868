// ExactAUC and GAUC: the exact area under the ROC curve of all predictions, without a histogram.
//
// Every element of y_pred counts. A label is positive if it is not 0. The area is the fraction of
// pairs of a positive and a negative example in which the positive one has the greater prediction.
// Pairs of equal predictions count half (Hanley and McNeil 1982). Each pair is weighted by the
// product of its weights.
//
// The metrics store all predictions since the last reset: 8 bytes per prediction with a nonzero
// weight, or 16 for GAUC, in the process that evaluated it. Computing a result temporarily takes
// some 32 bytes per prediction of all processes, in each process, and O(n log n) time. Logs
// therefore contain the metric at the end of an epoch only, not after each batch. Backups of
// training in the middle of an epoch do not contain the predictions: after a restore, the epoch's
// result covers only the batches that follow.
#pragma once

#include <keel/layers/metrics/confusion/scored_examples.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

// Base class of both metrics. Throws ValueError for negative weights when updated.
class ScoredMetric : public Metric {
 public:
  Direction direction() const override { return Direction::kUp; }
  void reset_state() final;
  void rebuild() final;
  bool costly_result() const final { return true; }

 protected:
  template <class Options>
  ScoredMetric(const char* class_name, const Options& options) : Metric(class_name, options, 0) {}

  // Computes the area of the examples of all replicas.
  virtual double area(const ScoredExamples& examples) const = 0;
  // Stores the examples with weight > 0. `positive` has one element per example; `group` may be
  // empty.
  void keep(const MetricBatch& batch, const std::vector<bool>& positive,
            std::span<const int64_t> group) const;

 private:
  Tensor compute(std::span<const double>) const final;
  bool uses_mask() const final { return true; }
  // The examples that update_state() stores, separately for each replica.
  mutable ReplicaExamples examples_;
};

// The options of ExactAUCMetric.
struct ExactAUCMetricOptions {
  std::string name = "exact_auc";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the area under the ROC curve, or 0 if there are no positive or no negative examples.
class ExactAUCMetric final : public ScoredMetric {
 public:
  static constexpr char kClassName[] = "ExactAUC";
  using Options = ExactAUCMetricOptions;
  explicit ExactAUCMetric(Options options)
      : ScoredMetric(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  double area(const ScoredExamples& examples) const override;
  const Options options_;
};

// The options of GAUCMetric.
struct GAUCMetricOptions {
  std::string name = "gauc";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
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
  static constexpr char kClassName[] = "GAUC";
  using Options = GAUCMetricOptions;
  explicit GAUCMetric(Options options)
      : ScoredMetric(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  double area(const ScoredExamples& examples) const override;
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using ExactAUC = Handle<ExactAUCMetric>;
using GAUC = Handle<GAUCMetric>;

// Combines labels and users of the same shape to the y_true of GAUC: float64 [..., 2]. A last
// dimension of length 1 is dropped first. Throws ValueError if the shapes differ.
Tensor labels_of_users(const Tensor& labels, const Tensor& users);
}  // namespace metrics

}  // namespace keel
