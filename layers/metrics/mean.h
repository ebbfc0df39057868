// Metrics that are a mean over samples, weighted by sample weights, and the weighted sum.
#pragma once

#include <keel/layers/losses/loss.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

// Base class of means over samples. The state holds the weighted sum of the values and the sum of
// their weights.
class MeanOfSamples : public Metric {
 protected:
  template <class Options>
  MeanOfSamples(const char* class_name, const Options& options) : Metric(class_name, options, 2) {}

  // Returns the value of each sample, float32 [batch, ...]. If there are sample weights, values
  // that the result's mask excludes do not count.
  virtual Tensor values(const MetricBatch& batch) const = 0;
  void accumulate(const MetricBatch& batch, std::span<double> state) const final;
  Tensor compute(std::span<const double> state) const override;  // returns 0 without samples
  bool uses_mask() const override { return true; }
};

// The options of MeanMetric.
struct MeanMetricOptions {
  std::string name = "mean";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean of values without labels. In a model it is the mean prediction.
class MeanMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "Mean";
  using Options = MeanMetricOptions;
  explicit MeanMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  using Metric::update_state;
  // Adds a batch of values without labels.
  void update_state(const Tensor& values) { Metric::update_state(values, values); }
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor values(const MetricBatch& batch) const override { return batch.y_pred; }
  const Options options_;
};

// The options of SumMetric.
struct SumMetricOptions {
  std::string name = "sum";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the weighted sum of values without labels.
class SumMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "Sum";
  using Options = SumMetricOptions;
  explicit SumMetric(Options options)
      : Metric(kClassName, options, 1), options_(std::move(options)) {}
  using Metric::update_state;
  // Adds a batch of values without labels.
  void update_state(const Tensor& values) { Metric::update_state(values, values); }
  Config get_config() const override { return to_config(options_); }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  const Options options_;
};

// The options of MeanMetricWrapperMetric.
struct MeanMetricWrapperMetricOptions {
  std::string name = {};  // empty: the name of the loss
  DType dtype = DType::kFloat32;
  LossArgument fn = {};  // required; its reduction is ignored
};

// Computes the mean over samples of an arbitrary loss.
class MeanMetricWrapperMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "MeanMetricWrapper";
  using Options = MeanMetricWrapperMetricOptions;
  explicit MeanMetricWrapperMetric(Options options);  // Throws ValueError if fn is missing.
  Config get_config() const override;

 private:
  bool sparse_labels(const Tensor&, const Tensor&) const override { return true; }
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using Mean = Handle<MeanMetric>;
using Sum = Handle<SumMetric>;
using MeanMetricWrapper = Handle<MeanMetricWrapperMetric>;
}  // namespace metrics

}  // namespace keel
