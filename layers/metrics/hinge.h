// Hinge metrics: means over samples of the losses with the same names.
#pragma once

#include <keel/layers/metrics/mean.h>

namespace keel {

// The options of HingeMetric.
struct HingeMetricOptions {
  std::string name = "hinge";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of HingeLoss.
class HingeMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "Hinge";
  using Options = HingeMetricOptions;
  explicit HingeMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of SquaredHingeMetric.
struct SquaredHingeMetricOptions {
  std::string name = "squared_hinge";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of SquaredHingeLoss.
class SquaredHingeMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "SquaredHinge";
  using Options = SquaredHingeMetricOptions;
  explicit SquaredHingeMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of CategoricalHingeMetric.
struct CategoricalHingeMetricOptions {
  std::string name = "categorical_hinge";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of CategoricalHingeLoss.
class CategoricalHingeMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "CategoricalHinge";
  using Options = CategoricalHingeMetricOptions;
  explicit CategoricalHingeMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using Hinge = Handle<HingeMetric>;
using SquaredHinge = Handle<SquaredHingeMetric>;
using CategoricalHinge = Handle<CategoricalHingeMetric>;
}  // namespace metrics

}  // namespace keel
