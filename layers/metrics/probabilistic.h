// Metrics of probability distributions: means over samples of the losses with the same names.
#pragma once

#include <keel/layers/metrics/mean.h>

namespace keel {

// The options of KLDivergenceMetric.
struct KLDivergenceMetricOptions {
  std::string name = "kl_divergence";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of KLDivergenceLoss.
class KLDivergenceMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "KLDivergence";
  using Options = KLDivergenceMetricOptions;
  explicit KLDivergenceMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

// The options of PoissonMetric.
struct PoissonMetricOptions {
  std::string name = "poisson";
  DType dtype = DType::kFloat32;
  static void fields(auto& self, auto&& field) { metric_fields(self, field); }
};

// Computes the mean over samples of PoissonLoss.
class PoissonMetric final : public MeanOfSamples {
 public:
  static constexpr char kClassName[] = "Poisson";
  using Options = PoissonMetricOptions;
  explicit PoissonMetric(Options options)
      : MeanOfSamples(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  Tensor values(const MetricBatch& batch) const override;
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using KLDivergence = Handle<KLDivergenceMetric>;
using Poisson = Handle<PoissonMetric>;
}  // namespace metrics

}  // namespace keel
