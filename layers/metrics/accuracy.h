// Accuracy metrics: the fraction of correct samples or elements, weighted by sample weights.
#pragma once

#include <type_traits>

#include <keel/layers/metrics/mean.h>

namespace keel {
namespace internal {
// Throws ValueError, naming `caller`, unless k > 0.
void check_k(const char* caller, int64_t k);
}  // namespace internal

namespace metrics {

// The functions return 1 for each correct sample or element and 0 for the others, float32. y_pred
// is float32; y_true is float32 of the same shape, unless labels are class numbers.

// Returns for each element whether y_pred equals the label.
Tensor accuracy(const Tensor& y_true, const Tensor& y_pred);
// Returns for each element whether y_pred is on the correct side of the threshold: above it for
// label 1, and not above it for label 0.
Tensor binary_accuracy(const Tensor& y_true, const Tensor& y_pred, double threshold = 0.5);
// Returns whether the label and the prediction [..., classes] have their maximum at the same class.
// The first of several equal maxima is used.
Tensor categorical_accuracy(const Tensor& y_true, const Tensor& y_pred);
// Returns categorical_accuracy() for labels that are class numbers, [...] or [..., 1]. For other
// shapes throws ValueError, naming `caller`.
Tensor sparse_categorical_accuracy(const std::string& caller, const Tensor& y_true,
                                   const Tensor& y_pred);
// Returns whether fewer than k classes have a greater prediction than the class with the greatest
// label.
Tensor top_k_categorical_accuracy(const std::string& caller, const Tensor& y_true,
                                  const Tensor& y_pred, int64_t k);
// Returns top_k_categorical_accuracy() for labels that are class numbers, [...] or [..., 1]. For
// other shapes throws ValueError, naming `caller`. With from_sorted_ids, predictions are class
// numbers too, and the label must be one of the first k.
Tensor sparse_top_k_categorical_accuracy(const std::string& caller, const Tensor& y_true,
                                         const Tensor& y_pred, int64_t k,
                                         bool from_sorted_ids = false);

}  // namespace metrics

// The metrics of the functions above that have no options of their own.
using AccuracyMetric =
    FormulaMetric<"Accuracy", MetricOptions<metrics::accuracy, Metric::Direction::kUp>>;
using CategoricalAccuracyMetric =
    FormulaMetric<"CategoricalAccuracy",
                  MetricOptions<metrics::categorical_accuracy, Metric::Direction::kUp>>;

// The options of metrics::BinaryAccuracy.
struct BinaryAccuracyMetricOptions {
  std::string name = "binary_accuracy";
  DType dtype = DType::kFloat32;  // kept for files only
  double threshold = 0.5;         // finite; 0 for logits

  static constexpr auto kDirection = Metric::Direction::kUp;
  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("threshold", self.threshold);
  }
  void check(const char* caller) const;
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return metrics::binary_accuracy(y_true, y_pred, threshold);
  }
};
using BinaryAccuracyMetric = FormulaMetric<"BinaryAccuracy", BinaryAccuracyMetricOptions>;

// The options of metrics::SparseCategoricalAccuracy.
struct SparseCategoricalAccuracyMetricOptions {
  std::string name = "sparse_categorical_accuracy";
  DType dtype = DType::kFloat32;  // kept for files only

  static constexpr auto kDirection = Metric::Direction::kUp;
  static constexpr void fields(auto& self, auto&& field) { metric_fields(self, field); }
  bool sparse_labels(const Tensor&, const Tensor&) const { return true; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return metrics::sparse_categorical_accuracy(name, y_true, y_pred);
  }
};
using SparseCategoricalAccuracyMetric =
    FormulaMetric<"SparseCategoricalAccuracy", SparseCategoricalAccuracyMetricOptions>;

// The options of metrics::TopKCategoricalAccuracy.
struct TopKMetricOptions {
  std::string name = {};          // empty: the class name in snake case
  DType dtype = DType::kFloat32;  // kept for files only
  int64_t k = 5;                  // > 0

  static constexpr auto kDirection = Metric::Direction::kUp;
  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("k", self.k);
  }
  void check(const char* caller) const { internal::check_k(caller, k); }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return metrics::top_k_categorical_accuracy(name, y_true, y_pred, k);
  }
};
using TopKCategoricalAccuracyMetric = FormulaMetric<"TopKCategoricalAccuracy", TopKMetricOptions>;

// The options of metrics::SparseTopKCategoricalAccuracy.
struct SparseTopKMetricOptions {
  std::string name = {};          // empty: the class name in snake case
  DType dtype = DType::kFloat32;  // kept for files only
  int64_t k = 5;                  // > 0
  // True: predictions are the numbers of classes in descending order of their scores, not scores.
  bool from_sorted_ids = false;

  static constexpr auto kDirection = Metric::Direction::kUp;
  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("k", self.k);
    // Keras does not write this key, and its earlier releases reject it.
    if (reads_fields(field) || self.from_sorted_ids) field("from_sorted_ids", self.from_sorted_ids);
  }
  void check(const char* caller) const { internal::check_k(caller, k); }
  bool sparse_labels(const Tensor&, const Tensor&) const { return true; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return metrics::sparse_top_k_categorical_accuracy(name, y_true, y_pred, k, from_sorted_ids);
  }
};
using SparseTopKCategoricalAccuracyMetric =
    FormulaMetric<"SparseTopKCategoricalAccuracy", SparseTopKMetricOptions>;

// The options of the metric that "accuracy" selects in compile(): binary accuracy if predictions
// have one column, sparse categorical accuracy if labels have one column or one dimension less than
// predictions, else categorical accuracy.
struct AutoAccuracyMetricOptions {
  std::string name = "accuracy";
  DType dtype = DType::kFloat32;  // kept for files only

  static constexpr auto kDirection = Metric::Direction::kUp;
  static constexpr void fields(auto& self, auto&& field) { metric_fields(self, field); }
  bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const;
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const;
};
using AutoAccuracyMetric = FormulaMetric<"AutoAccuracy", AutoAccuracyMetricOptions>;

namespace metrics {
// Handles to the metrics, under Keras's names.
using Accuracy = Handle<AccuracyMetric>;
using BinaryAccuracy = Handle<BinaryAccuracyMetric>;
using CategoricalAccuracy = Handle<CategoricalAccuracyMetric>;
using SparseCategoricalAccuracy = Handle<SparseCategoricalAccuracyMetric>;
using TopKCategoricalAccuracy = Handle<TopKCategoricalAccuracyMetric>;
using SparseTopKCategoricalAccuracy = Handle<SparseTopKCategoricalAccuracyMetric>;
}  // namespace metrics

}  // namespace keel
