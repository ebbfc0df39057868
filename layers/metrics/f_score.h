// F-scores: weighted harmonic means of precision and recall, for each class.
#pragma once

#include <optional>

#include <keel/layers/metrics/metric.h>

namespace keel {

// Base class of the F-scores. y_true and y_pred are [batch, classes]. Without a threshold, the
// greatest predictions of a row are positive unless they are 0. With a threshold, predictions above
// it are positive. Labels between 0 and 1 count fractionally. The result has one number per class
// if `average` is unset. Otherwise it is one number: "micro" computes it from the counts of all
// classes, "macro" is the mean over the classes, and "weighted" is the mean weighted by the number
// of labels of each class.
class FScoreMetric : public Metric {
 public:
  Direction direction() const override { return Direction::kUp; }

 protected:
  struct Rule {
    std::optional<std::string> average = {};
    double beta = 1;
    std::optional<double> threshold = {};
  };
  // Throws ValueError for an unknown average, for beta <= 0, and for a threshold outside of (0, 1].
  template <class Options>
  FScoreMetric(const char* class_name, const Options& options, Rule rule)
      : Metric(class_name, options, kUnknown), rule_(checked(class_name, std::move(rule))) {}

 private:
  static Rule checked(const char* caller, Rule rule);
  void accumulate(const MetricBatch& batch, std::span<double> state) const override;
  Tensor compute(std::span<const double> state) const override;
  int64_t state_size_of(const MetricBatch& batch) const override;

  const Rule rule_;
};

// The options of FBetaScoreMetric.
struct FBetaScoreMetricOptions {
  std::string name = "fbeta_score";
  DType dtype = DType::kFloat32;
  std::optional<std::string> average = {};  // unset, "micro", "macro" or "weighted"
  double beta = 1.0;                        // > 0: the weight of recall relative to precision
  std::optional<double> threshold = {};     // in (0, 1]

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("average", self.average);
    field("beta", self.beta);
    field("threshold", self.threshold);
  }
};

// F-beta score: (1 + beta^2) precision recall / (beta^2 precision + recall).
class FBetaScoreMetric final : public FScoreMetric {
 public:
  static constexpr char kClassName[] = "FBetaScore";
  using Options = FBetaScoreMetricOptions;
  explicit FBetaScoreMetric(Options options)
      : FScoreMetric(kClassName, options, {options.average, options.beta, options.threshold}),
        options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

// The options of F1ScoreMetric.
struct F1ScoreMetricOptions {
  std::string name = "f1_score";
  DType dtype = DType::kFloat32;
  std::optional<std::string> average = {};
  std::optional<double> threshold = {};

  static void fields(auto& self, auto&& field) {
    metric_fields(self, field);
    field("average", self.average);
    field("threshold", self.threshold);
  }
};

// F1 score: FBetaScore with beta = 1.
class F1ScoreMetric final : public FScoreMetric {
 public:
  static constexpr char kClassName[] = "F1Score";
  using Options = F1ScoreMetricOptions;
  explicit F1ScoreMetric(Options options)
      : FScoreMetric(kClassName, options, {options.average, 1, options.threshold}),
        options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  const Options options_;
};

namespace metrics {
// Handles to the metrics, under Keras's names.
using FBetaScore = Handle<FBetaScoreMetric>;
using F1Score = Handle<F1ScoreMetric>;
}  // namespace metrics

}  // namespace keel
