// Metrics that are a mean over samples, weighted by sample weights: of values and of losses.
#pragma once

#include "layers/metrics/metric.h"

namespace keel {

// State: the weighted sum of the values, and the sum of their weights.
class MeanOfSamples : public Metric {
 protected:
  template <class Options>
  MeanOfSamples(const char* class_name, const Options& options) : Metric(class_name, options, 2) {}

  // A value of each sample, float32 [batch, ...].
  virtual Tensor values(const MetricBatch& batch) const = 0;
  void accumulate(const MetricBatch& batch, std::span<double> state) const final;
  double compute(std::span<const double> state) const override;  // 0 without samples
};

struct MeanMetricOptions {
  std::string name = "mean";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// The mean of values that have no labels. In a model it is the mean prediction.
class MeanMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "Mean";
  using Options = MeanMetricOptions;
  explicit MeanMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  using Metric::update_state;
  void update_state(const Tensor& values) { Metric::update_state(values, values); }
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor values(const MetricBatch& batch) const override { return batch.y_pred; }
  const Options options_;
};

struct MeanSquaredErrorMetricOptions {
  std::string name = "mean_squared_error";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

class MeanSquaredErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "MeanSquaredError";
  using Options = MeanSquaredErrorMetricOptions;
  explicit MeanSquaredErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

struct RootMeanSquaredErrorMetricOptions {
  std::string name = "root_mean_squared_error";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// The square root of the mean over all batches.
class RootMeanSquaredErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "RootMeanSquaredError";
  using Options = RootMeanSquaredErrorMetricOptions;
  explicit RootMeanSquaredErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor values(const MetricBatch& batch) const override;
  double compute(std::span<const double> state) const override;
  const Options options_;
};

struct MeanAbsoluteErrorMetricOptions {
  std::string name = "mean_absolute_error";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

class MeanAbsoluteErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "MeanAbsoluteError";
  using Options = MeanAbsoluteErrorMetricOptions;
  explicit MeanAbsoluteErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

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

class BinaryCrossentropyMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "BinaryCrossentropy";
  using Options = BinaryCrossentropyMetricOptions;
  explicit BinaryCrossentropyMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

namespace metrics {
using Mean = Handle<MeanMetric>;
using MeanSquaredError = Handle<MeanSquaredErrorMetric>;
using RootMeanSquaredError = Handle<RootMeanSquaredErrorMetric>;
using MeanAbsoluteError = Handle<MeanAbsoluteErrorMetric>;
using BinaryCrossentropy = Handle<BinaryCrossentropyMetric>;
}  // namespace metrics

}  // namespace keel
