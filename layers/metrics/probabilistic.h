// Metrics of predicted probabilities: cross entropies, divergences and calibration. The cross
// entropies and divergences are means over samples of the losses with the same names
// (losses/crossentropy.h, losses/probabilistic.h).
#pragma once

#include <optional>

#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/losses/probabilistic.h>
#include <keel/layers/metrics/mean.h>

namespace keel {

using KLDivergenceMetric = FormulaMetric<"KLDivergence", MetricOptions<losses::kl_divergence>>;
using PoissonMetric = FormulaMetric<"Poisson", MetricOptions<losses::poisson>>;

// The options of metrics::BinaryCrossentropy, the mean of losses::binary_crossentropy().
struct BinaryCrossentropyMetricOptions {
  std::string name = "binary_crossentropy";
  DType dtype = DType::kFloat32;  // kept for files only
  bool from_logits = false;       // true if y_pred holds logits
  double label_smoothing = 0;     // in [0, 1]

  static constexpr auto kDirection = Metric::Direction::kDown;
  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
  }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::binary_crossentropy(y_true, y_pred, from_logits, label_smoothing);
  }
};
using BinaryCrossentropyMetric =
    FormulaMetric<"BinaryCrossentropy", BinaryCrossentropyMetricOptions>;

// The options of metrics::CategoricalCrossentropy, the mean of losses::categorical_crossentropy().
struct CategoricalCrossentropyMetricOptions {
  std::string name = "categorical_crossentropy";
  DType dtype = DType::kFloat32;  // kept for files only
  bool from_logits = false;       // true if y_pred holds logits
  double label_smoothing = 0;     // in [0, 1]
  int axis = -1;                  // axis of the classes

  static constexpr auto kDirection = Metric::Direction::kDown;
  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
    field("label_smoothing", self.label_smoothing);
    field("axis", self.axis);
  }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::categorical_crossentropy(y_true, y_pred, from_logits, label_smoothing, axis);
  }
};
using CategoricalCrossentropyMetric =
    FormulaMetric<"CategoricalCrossentropy", CategoricalCrossentropyMetricOptions>;

// The options of metrics::SparseCategoricalCrossentropy, the mean of
// losses::sparse_categorical_crossentropy(). Ignored samples count as 0 if there are no sample
// weights, and are excluded if there are.
struct SparseCategoricalCrossentropyMetricOptions {
  std::string name = "sparse_categorical_crossentropy";
  DType dtype = DType::kFloat32;             // kept for files only
  bool from_logits = false;                  // true if y_pred holds logits
  std::optional<int64_t> ignore_class = {};  // samples with this label are ignored
  int axis = -1;                             // axis of the classes in y_pred

  static constexpr auto kDirection = Metric::Direction::kDown;
  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
    field("ignore_class", self.ignore_class);
    field("axis", self.axis);
  }
  bool sparse_labels(const Tensor&, const Tensor&) const { return true; }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::sparse_categorical_crossentropy(y_true, y_pred, from_logits, ignore_class, axis);
  }
};
using SparseCategoricalCrossentropyMetric =
    FormulaMetric<"SparseCategoricalCrossentropy", SparseCategoricalCrossentropyMetricOptions>;

// The options of the metric that "crossentropy" selects in compile(): the mean of
// losses::auto_crossentropy().
struct AutoCrossentropyMetricOptions {
  std::string name = "crossentropy";
  DType dtype = DType::kFloat32;  // kept for files only

  static constexpr auto kDirection = Metric::Direction::kDown;
  static constexpr void fields(auto& self, auto&& field) { metric_fields(self, field); }
  bool sparse_labels(const Tensor& y_true, const Tensor& y_pred) const {
    return label_kind(y_true, y_pred) == LabelKind::kSparseCategorical;
  }
  Tensor per_sample(const Tensor& y_true, const Tensor& y_pred) const {
    return losses::auto_crossentropy(y_true, y_pred);
  }
};
using AutoCrossentropyMetric = FormulaMetric<"AutoCrossentropy", AutoCrossentropyMetricOptions>;

// The options of metrics::NormalizedEntropy and metrics::Calibration.
struct ClickMetricOptions {
  std::string name = {};          // empty: the class name in snake case
  DType dtype = DType::kFloat32;  // kept for files only
  bool from_logits = false;       // true if predictions are log odds

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("from_logits", self.from_logits);
  }
};

// The mean log loss divided by the log loss of always predicting the mean label q (He et al. 2014,
// "Practical lessons from predicting clicks on ads at Facebook"):
//   mean(-y log p - (1 - y) log(1 - p)) / (-q log q - (1 - q) log(1 - q))
// Values below 1 are better than predicting the mean. The clip range of probabilities is
// [1e-7, 1 - 1e-7]. The result is 0 where the quotient is undefined: without samples, and if all
// labels are 0 or all are 1. Every element of y_pred counts, with its sample weight. Labels are in
// [0, 1].
class NormalizedEntropyMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "NormalizedEntropy";  // the name in configs and files
  using Options = ClickMetricOptions;                        // the options of the constructor
  explicit NormalizedEntropyMetric(Options options);
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kDown; }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  bool uses_mask() const override { return true; }
  const Options options_;
};

// The mean prediction divided by the mean label (He et al. 2014): 1 if there are as many clicks as
// predicted, and above 1 if there are fewer. The result is 0 if no label is positive. Every element
// of y_pred counts, with its sample weight. Labels are in [0, 1].
class CalibrationMetric final : public Metric {
 public:
  static constexpr char kClassName[] = "Calibration";  // the name in configs and files
  using Options = ClickMetricOptions;                  // the options of the constructor
  explicit CalibrationMetric(Options options);
  Config get_config() const override { return to_config(options_); }

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  bool uses_mask() const override { return true; }
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using BinaryCrossentropy = Handle<BinaryCrossentropyMetric>;
using CategoricalCrossentropy = Handle<CategoricalCrossentropyMetric>;
using SparseCategoricalCrossentropy = Handle<SparseCategoricalCrossentropyMetric>;
using KLDivergence = Handle<KLDivergenceMetric>;
using Poisson = Handle<PoissonMetric>;
using NormalizedEntropy = Handle<NormalizedEntropyMetric>;
using Calibration = Handle<CalibrationMetric>;
}  // namespace metrics

}  // namespace keel
