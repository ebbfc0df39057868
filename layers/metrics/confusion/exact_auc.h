// ExactAUC and GAUC: the area under the ROC curve of all predictions, not of a histogram.
//
// Every element of y_pred counts; a label is positive if it is not 0. The area is the part of the
// pairs of a positive and a negative in which the positive has the greater prediction, pairs of
// equal ones counting half (Hanley and McNeil 1982); each pair weighs the product of its weights.
//
// The predictions since the last reset are kept: 8 bytes for each that has a weight, 16 for GAUC,
// in the process that saw it; a result takes some 32 bytes more for each of all processes, in each,
// and O(n log n) time, so logs have it at the end of an epoch, not after each batch. Backups of
// training in the midst of an epoch do not hold them: after a restore the epoch's result is of the
// batches that follow.
#pragma once

#include <keel/layers/metrics/confusion/scored_examples.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

// Base of both. ValueError, when updated, for negative weights.
class ScoredMetric : public Metric {
 public:
  Direction direction() const override { return Direction::kUp; }
  void reset_state() final;
  void rebuild() final;
  bool costly_result() const final { return true; }

 protected:
  template <class Options>
  ScoredMetric(const char* class_name, const Options& options) : Metric(class_name, options, 0) {}

  // Of the examples of all replicas.
  virtual double area(const ScoredExamples& examples) const = 0;
  // Adds those of weight > 0. `positive` tells of each, `group` may be empty.
  void keep(const MetricBatch& batch, const std::vector<bool>& positive,
            std::span<const int64_t> group) const;

 private:
  Tensor compute(std::span<const double>) const final;
  bool uses_mask() const final { return true; }
  // What update_state() adds to in place of sums: each replica to its own.
  mutable ReplicaExamples examples_;
};

struct ExactAUCMetricOptions {
  std::string name = "exact_auc";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// 0 without a positive or without a negative.
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

struct GAUCMetricOptions {
  std::string name = "gauc";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// The mean of the areas of users, weighted by their impressions, the sums of their weights (Zhu et
// al. 2017, "Optimized cost per click in Taobao display advertising"). Users without a positive or
// without a negative do not count; 0 if there is no other.
// y_true has the label and the user of each element of y_pred along a last axis: [batch, 2] for
// predictions [batch] or [batch, 1]. Users are whole numbers (ValueError); those beyond 2^24 need
// y_true in float64, or in int64 if labels are whole too (metrics::labels_of_users).
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
using ExactAUC = Handle<ExactAUCMetric>;
using GAUC = Handle<GAUCMetric>;

// What GAUC takes as y_true, of labels and users of one shape, without its last dimension if that
// is 1: float64 [..., 2]. ValueError if the shapes differ.
Tensor labels_of_users(const Tensor& labels, const Tensor& users);
}  // namespace metrics

}  // namespace keel
