// Regression metrics: means over samples of the losses with the same names.
#pragma once

#include <keel/layers/metrics/mean.h>

namespace keel {

// The options of MeanSquaredErrorMetric.
struct MeanSquaredErrorMetricOptions {
  std::string name = "mean_squared_error";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of MeanSquaredErrorLoss.
class MeanSquaredErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "MeanSquaredError";
  using Options = MeanSquaredErrorMetricOptions;
  explicit MeanSquaredErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of RootMeanSquaredErrorMetric.
struct RootMeanSquaredErrorMetricOptions {
  std::string name = "root_mean_squared_error";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the square root of the mean squared error over all batches.
class RootMeanSquaredErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "RootMeanSquaredError";
  using Options = RootMeanSquaredErrorMetricOptions;
  explicit RootMeanSquaredErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  bool uses_mask() const override { return false; }  // Keras ignores the mask here
  Tensor values(const MetricBatch& batch) const override;
  Tensor compute(std::span<const double> state) const override;
  const Options options_;
};

// The options of MeanAbsoluteErrorMetric.
struct MeanAbsoluteErrorMetricOptions {
  std::string name = "mean_absolute_error";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of MeanAbsoluteErrorLoss.
class MeanAbsoluteErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "MeanAbsoluteError";
  using Options = MeanAbsoluteErrorMetricOptions;
  explicit MeanAbsoluteErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of MeanAbsolutePercentageErrorMetric.
struct MeanAbsolutePercentageErrorMetricOptions {
  std::string name = "mean_absolute_percentage_error";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of MeanAbsolutePercentageErrorLoss.
class MeanAbsolutePercentageErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "MeanAbsolutePercentageError";
  using Options = MeanAbsolutePercentageErrorMetricOptions;
  explicit MeanAbsolutePercentageErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of MeanSquaredLogarithmicErrorMetric.
struct MeanSquaredLogarithmicErrorMetricOptions {
  std::string name = "mean_squared_logarithmic_error";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of MeanSquaredLogarithmicErrorLoss.
class MeanSquaredLogarithmicErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "MeanSquaredLogarithmicError";
  using Options = MeanSquaredLogarithmicErrorMetricOptions;
  explicit MeanSquaredLogarithmicErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of LogCoshErrorMetric.
struct LogCoshErrorMetricOptions {
  std::string name = "logcosh";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of LogCoshLoss.
class LogCoshErrorMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "LogCoshError";
  using Options = LogCoshErrorMetricOptions;
  explicit LogCoshErrorMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of CosineSimilarityMetric.
struct CosineSimilarityMetricOptions {
  std::string name = "cosine_similarity";
  DType dtype = DType::kFloat32;
  int axis = -1;  // written to configs unless it is -1

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("axis", self.axis);
  }
};

// Computes the cosine of the angle between labels and predictions, which are vectors along `axis`.
class CosineSimilarityMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "CosineSimilarity";
  using Options = CosineSimilarityMetricOptions;
  explicit CosineSimilarityMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override;
  Direction direction() const override { return Direction::kUp; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using MeanSquaredError = Handle<MeanSquaredErrorMetric>;
using RootMeanSquaredError = Handle<RootMeanSquaredErrorMetric>;
using MeanAbsoluteError = Handle<MeanAbsoluteErrorMetric>;
using MeanAbsolutePercentageError = Handle<MeanAbsolutePercentageErrorMetric>;
using MeanSquaredLogarithmicError = Handle<MeanSquaredLogarithmicErrorMetric>;
using LogCoshError = Handle<LogCoshErrorMetric>;
using CosineSimilarity = Handle<CosineSimilarityMetric>;
}  // namespace metrics

}  // namespace keel
