// Classification metrics other than accuracies: F-scores, and the means over samples of the hinge
// losses (losses/margin.h).
#pragma once

#include <optional>

#include <keel/layers/losses/margin.h>
#include <keel/layers/metrics/mean.h>

namespace keel {

using HingeMetric = FormulaMetric<"Hinge", MetricOptions<losses::hinge>>;
using SquaredHingeMetric = FormulaMetric<"SquaredHinge", MetricOptions<losses::squared_hinge>>;
using CategoricalHingeMetric =
    FormulaMetric<"CategoricalHinge", MetricOptions<losses::categorical_hinge>>;

// The options of metrics::FBetaScore.
struct FBetaScoreMetricOptions {
  std::string name = "fbeta_score";
  DType dtype = DType::kFloat32;            // kept for files only
  std::optional<std::string> average = {};  // unset, "micro", "macro" or "weighted"
  double beta = 1.0;                        // > 0: the weight of recall relative to precision
  std::optional<double> threshold = {};     // in (0, 1]

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("average", self.average);
    field("beta", self.beta);
    field("threshold", self.threshold);
  }
};

// The F-beta score of each class, a weighted harmonic mean of precision and recall:
//   (1 + beta^2) precision recall / (beta^2 precision + recall)
// y_true and y_pred are [batch, classes]. Without a threshold, the greatest predictions of a row
// are positive unless they are 0. With a threshold, predictions above it are positive. Labels
// between 0 and 1 count fractionally. The result has one number per class if `average` is unset.
// Otherwise it is one number: "micro" computes it from the counts of all classes, "macro" is the
// mean over the classes, and "weighted" is the mean weighted by the number of labels of each class.
class FBetaScoreMetric : public Metric {
 public:
  static constexpr char kClassName[] = "FBetaScore";  // the name in configs and files
  using Options = FBetaScoreMetricOptions;            // the options of the constructor
  // Throws ValueError for an unknown average, for beta <= 0, and for a threshold outside of (0, 1].
  explicit FBetaScoreMetric(Options options) : FBetaScoreMetric(kClassName, std::move(options)) {}
  Config get_config() const override { return to_config(options_); }
  Direction direction() const override { return Direction::kUp; }

 protected:
  // For a class of another name.
  FBetaScoreMetric(const char* class_name, Options options);

 private:
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  int64_t state_size_of(const MetricBatch& batch) const override;

  const Options options_;
};

// The options of metrics::F1Score.
struct F1ScoreMetricOptions {
  std::string name = "f1_score";
  DType dtype = DType::kFloat32;            // kept for files only
  std::optional<std::string> average = {};  // unset, "micro", "macro" or "weighted"
  std::optional<double> threshold = {};     // in (0, 1]

  static constexpr void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("average", self.average);
    field("threshold", self.threshold);
  }
};

// The F1 score: FBetaScore with beta = 1.
class F1ScoreMetric final : public FBetaScoreMetric {
 public:
  static constexpr char kClassName[] = "F1Score";  // the name in configs and files
  using Options = F1ScoreMetricOptions;            // the options of the constructor
  // Throws ValueError in the cases of FBetaScoreMetric.
  explicit F1ScoreMetric(Options options)
      : FBetaScoreMetric(kClassName, {.name = options.name,
                                      .dtype = options.dtype,
                                      .average = options.average,
                                      .threshold = options.threshold}),
        options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using Hinge = Handle<HingeMetric>;
using SquaredHinge = Handle<SquaredHingeMetric>;
using CategoricalHinge = Handle<CategoricalHingeMetric>;
using FBetaScore = Handle<FBetaScoreMetric>;
using F1Score = Handle<F1ScoreMetric>;
}  // namespace metrics

}  // namespace keel
