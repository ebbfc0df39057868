// Accuracy metrics: the fraction of correct samples, weighted by sample weights.
#pragma once

#include <keel/layers/metrics/mean.h>

namespace keel {

// The options of AccuracyMetric.
struct AccuracyMetricOptions {
  std::string name = "accuracy";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the fraction of elements of y_pred that equal the label.
class AccuracyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "Accuracy";
  using Options = AccuracyMetricOptions;
  explicit AccuracyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of BinaryAccuracyMetric.
struct BinaryAccuracyMetricOptions {
  std::string name = "binary_accuracy";
  DType dtype = DType::kFloat32;
  double threshold = 0.5;

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("threshold", self.threshold);
  }
};

// Computes the fraction of elements of y_pred that are on the correct side of the threshold: above
// it for label 1, and not above it for label 0. Set the threshold to 0 for logits.
class BinaryAccuracyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "BinaryAccuracy";
  using Options = BinaryAccuracyMetricOptions;
  // Throws ValueError unless the threshold is finite.
  explicit BinaryAccuracyMetric(Options options);
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of CategoricalAccuracyMetric.
struct CategoricalAccuracyMetricOptions {
  std::string name = "categorical_accuracy";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the fraction of samples whose label and prediction [..., classes] have their maximum at
// the same class. The first of several equal maxima is used.
class CategoricalAccuracyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "CategoricalAccuracy";
  using Options = CategoricalAccuracyMetricOptions;
  explicit CategoricalAccuracyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of SparseCategoricalAccuracyMetric.
struct SparseCategoricalAccuracyMetricOptions {
  std::string name = "sparse_categorical_accuracy";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// CategoricalAccuracy for labels that are class numbers [...] or [..., 1].
class SparseCategoricalAccuracyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "SparseCategoricalAccuracy";
  using Options = SparseCategoricalAccuracyMetricOptions;
  explicit SparseCategoricalAccuracyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of TopKCategoricalAccuracyMetric.
struct TopKCategoricalAccuracyMetricOptions {
  std::string name = "top_k_categorical_accuracy";
  DType dtype = DType::kFloat32;
  int64_t k = 5;  // > 0

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("k", self.k);
  }
};

// Computes the fraction of samples for which fewer than k classes have a greater prediction than
// the class with the greatest label.
class TopKCategoricalAccuracyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "TopKCategoricalAccuracy";
  using Options = TopKCategoricalAccuracyMetricOptions;
  explicit TopKCategoricalAccuracyMetric(Options options);  // Throws ValueError unless k > 0.
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of SparseTopKCategoricalAccuracyMetric.
struct SparseTopKCategoricalAccuracyMetricOptions {
  std::string name = "sparse_top_k_categorical_accuracy";
  DType dtype = DType::kFloat32;
  int64_t k = 5;  // > 0

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("k", self.k);
  }
};

// TopKCategoricalAccuracy for labels that are class numbers [...] or [..., 1].
class SparseTopKCategoricalAccuracyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "SparseTopKCategoricalAccuracy";
  using Options = SparseTopKCategoricalAccuracyMetricOptions;
  // Throws ValueError unless k > 0.
  explicit SparseTopKCategoricalAccuracyMetric(Options options);
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of AutoAccuracyMetric.
struct AutoAccuracyMetricOptions {
  std::string name = "accuracy";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// The metric that "accuracy" selects in compile(): binary if predictions have one column; sparse
// categorical if labels have one column or one dimension less than predictions; else categorical.
class AutoAccuracyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "AutoAccuracy";
  using Options = AutoAccuracyMetricOptions;
  explicit AutoAccuracyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 private:
  bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const override;
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

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
