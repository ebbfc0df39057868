// Metrics that are means over samples, weighted by sample weights, and the weighted sum.
//
// FormulaMetric makes such a metric from a formula: an aggregate that holds the options of the
// metric and computes the value of each sample.
//
//   struct PowerErrorMetricOptions {
//     std::string name = {};            // empty: "power_error", the class in snake case
//     DType dtype = DType::kFloat32;    // kept for files only
//     double p = 2;                     // >= 1
//
//     static constexpr auto kDirection = Metric::Direction::kDown;
//     static constexpr void fields(auto& self, auto&& field) {
//       metric_fields(self, field);
//       field("p", self.p);
//     }
//     Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const;
//   };
//   using PowerErrorMetric = FormulaMetric<"PowerError", PowerErrorMetricOptions>;
//   using PowerError = Handle<PowerErrorMetric>;
//
// per_sample() receives the tensors of a MetricBatch and returns float32 [batch, ...]. A formula
// may also have these functions:
//   void check(const char* caller) const;   // throws ValueError for options out of range
//   Config get_config() const;              // as Metric::get_config()
//   double result(double mean) const;       // turns the mean into the result
//   bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const;  // see Metric
//   static bool uses_mask();                // see Metric
#pragma once

#include <keel/layers/losses/formula_loss.h>
#include <keel/layers/metrics/metric.h>

namespace keel {

// Base class of means over samples. The state holds the weighted sum of the values and the sum of
// their weights.
class MeanOfSamples : public Metric {
 protected:
  // Takes the name from `options`; see Metric.
  template <class Options>
  MeanOfSamples(const char* class_name, const Options& options) : Metric(class_name, options, 2) {}

  // Returns the value of each sample, float32 [batch, ...]. If there are sample weights, values
  // that the result's mask excludes do not count.
  virtual Tensor values(const MetricBatch& batch) const = 0;
  void accumulate(const MetricBatch& batch, std::span<double> state) const final;
  Tensor compute(std::span<const double> state) const override;  // returns 0 without samples
  bool uses_mask() const override { return true; }
};

// The mean over samples of what `Formula` computes. Files name the class `kName`.
template <ClassName kName, class Formula>
class FormulaMetric final : public MeanOfSamples {
 public:
  static constexpr const char* kClassName = kName.text;  // the name in configs and files
  using Options = Formula;                               // the formula with its options

  // Throws the errors of Formula::check().
  explicit FormulaMetric(Options options)
      : MeanOfSamples(kClassName, options), formula_(std::move(options)) {
    formula_.name = name();
    if constexpr (requires { formula_.check(kClassName); }) formula_.check(kClassName);
  }
  Direction direction() const override { return Formula::kDirection; }
  Config get_config() const override {
    if constexpr (requires { formula_.get_config(); }) {
      return formula_.get_config();
    } else {
      return to_config(formula_);
    }
  }

 private:
  Tensor values(const MetricBatch& batch) const override {
    return formula_.per_sample(batch.y_true, batch.y_pred);
  }
  Tensor compute(std::span<const double> state) const override {
    Tensor mean = MeanOfSamples::compute(state);
    if constexpr (requires { formula_.result(0.0); }) {
      return Tensor::scalar(formula_.result(mean.item<double>()));
    } else {
      return mean;
    }
  }
  bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const override {
    if constexpr (requires { formula_.sparse_labels(y_true, y_pred); }) {
      return formula_.sparse_labels(y_true, y_pred);
    } else {
      return MeanOfSamples::sparse_labels(y_true, y_pred);
    }
  }
  bool uses_mask() const override {
    if constexpr (requires { Formula::uses_mask(); }) {
      return Formula::uses_mask();
    } else {
      return MeanOfSamples::uses_mask();
    }
  }

  Formula formula_;  // constant after construction
};

// The options of a metric that has none of its own. `kFunction` computes the value of each sample
// from labels and predictions.
template <auto kFunction, Metric::Direction kBetter = Metric::Direction::kDown>
struct MetricOptions {
  std::string name = {};          // empty: the class name in snake case
  DType dtype = DType::kFloat32;  // kept for files only

  static constexpr auto kDirection = kBetter;  // tells callbacks which values are better
  // Lists the options.
  static constexpr void fields(auto& self, auto&& field) { metric_fields(self, field); }
  // Returns the value of each sample.
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return kFunction(y_true, y_pred);
  }
};

// The options of metrics::Mean and metrics::Sum.
struct ReductionMetricOptions {
  std::string name = {};          // empty: the class name in snake case
  DType dtype = DType::kFloat32;  // kept for files only

  // Lists the options.
  static constexpr void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean of values without labels. In a model it is the mean prediction.
class MeanMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "Mean";  // the name in configs and files
  using Options = ReductionMetricOptions;       // the options of the constructor
  explicit MeanMetric(Options options)
      : MeanOfSamples(kClassName, options), options_{name(), options.dtype} {}
  using Metric::update_state;
  // Adds a batch of values without labels.
  void update_state(const Tensor& values) { Metric::update_state(values, values); }
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor values(const MetricBatch& batch) const override { return batch.y_pred; }
  const Options options_;
};

// Computes the weighted sum of values without labels.
class SumMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "Sum";  // the name in configs and files
  using Options = ReductionMetricOptions;      // the options of the constructor
  explicit SumMetric(Options options)
      : Metric(kClassName, options, 1), options_{name(), options.dtype} {}
  using Metric::update_state;
  // Adds a batch of values without labels.
  void update_state(const Tensor& values) { Metric::update_state(values, values); }
  Config get_config() const override { return to_config(options_); }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  const Options options_;
};

// The options of metrics::MeanMetricWrapper.
struct MeanMetricWrapperMetricOptions {
  std::string name = {};          // empty: the name of the loss
  DType dtype = DType::kFloat32;  // kept for files only
  LossArgument fn = {};           // required; its reduction is ignored
};

// Computes the mean over samples of an arbitrary loss.
class MeanMetricWrapperMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "MeanMetricWrapper";  // the name in configs and files
  using Options = MeanMetricWrapperMetricOptions;            // the options of the constructor
  // Throws ValueError if fn is missing.
  explicit MeanMetricWrapperMetric(Options options);
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
