// Cross-entropy metrics: means over samples of the losses with the same names.
#pragma once

#include <optional>

#include <keel/layers/metrics/mean.h>

namespace keel {

// The options of BinaryCrossentropyMetric.
struct BinaryCrossentropyMetricOptions {
  std::string name = "binary_crossentropy";
  DType dtype = DType::kFloat32;
  bool from_logits = false;
  double label_smoothing = 0;

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
  }
};

// Computes the mean over samples of BinaryCrossentropyLoss.
class BinaryCrossentropyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "BinaryCrossentropy";
  using Options = BinaryCrossentropyMetricOptions;
  explicit BinaryCrossentropyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of CategoricalCrossentropyMetric.
struct CategoricalCrossentropyMetricOptions {
  std::string name = "categorical_crossentropy";
  DType dtype = DType::kFloat32;
  bool from_logits = false;
  double label_smoothing = 0;
  int axis = -1;

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
  }
};

// Computes the mean over samples of CategoricalCrossentropyLoss.
class CategoricalCrossentropyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "CategoricalCrossentropy";
  using Options = CategoricalCrossentropyMetricOptions;
  explicit CategoricalCrossentropyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of SparseCategoricalCrossentropyMetric.
struct SparseCategoricalCrossentropyMetricOptions {
  std::string name = "sparse_categorical_crossentropy";
  DType dtype = DType::kFloat32;
  bool from_logits = false;
  std::optional<int64_t> ignore_class = {};
  int axis = -1;

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
    field("ignore_class", self.ignore_class);
    field("axis", self.axis);
  }
};

// Ignored samples count as 0 if there are no sample weights, and are excluded if there are.
class SparseCategoricalCrossentropyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "SparseCategoricalCrossentropy";
  using Options = SparseCategoricalCrossentropyMetricOptions;
  explicit SparseCategoricalCrossentropyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of AutoCrossentropyMetric.
struct AutoCrossentropyMetricOptions {
  std::string name = "crossentropy";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// The metric that "crossentropy" selects in compile(), with the rules of AutoCrossentropyLoss.
class AutoCrossentropyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "AutoCrossentropy";
  using Options = AutoCrossentropyMetricOptions;
  explicit AutoCrossentropyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const override;
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using BinaryCrossentropy = Handle<BinaryCrossentropyMetric>;
using CategoricalCrossentropy = Handle<CategoricalCrossentropyMetric>;
using SparseCategoricalCrossentropy = Handle<SparseCategoricalCrossentropyMetric>;
}  // namespace metrics

}  // namespace keel
