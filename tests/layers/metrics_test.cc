#include "layers/metrics.h"

#include <cmath>
#include <limits>

#include "gtest/gtest.h"

#include "autodiff/tape.h"
#include "distribute/tpu_strategy.h"
#include "tests/layers/metrics_golden.h"

namespace keel {
namespace {

TEST(MetricsTest, AgreeWithKerasAfterEachBatch) {
  for (const auto& c : testing_support::metric_cases()) {
    for (const bool weighted : {false, true}) {
      const auto& expected = weighted ? c.weighted : c.unweighted;
      const MetricHandle metric = metrics::deserialize(parse_json(c.config));
      for (size_t i = 0; i < expected.size(); ++i) {
        const auto& update = c.updates[i];
        const Tensor y_pred = Tensor::from(update.y_pred, c.shape);
        const Tensor y_true =
            update.y_true.empty() ? y_pred : Tensor::from(update.y_true, c.label_shape);
        metric->update_state(
            y_true, y_pred,
            weighted ? Tensor::from(update.sample_weight, c.weight_shape) : Tensor());
        EXPECT_NEAR(metric->result(), expected[i], 2e-6) << c.config << ", batch " << i;
      }
    }
  }
}

// The chance that a positive lies above a negative, ties counting half.
double pairwise_auc(const std::vector<float>& label, const std::vector<float>& score) {
  double above = 0, pairs = 0;
  for (size_t i = 0; i < label.size(); ++i) {
    for (size_t j = 0; j < label.size(); ++j) {
      if (label[i] != 1 || label[j] != 0) continue;
      pairs += 1;
      above += score[i] > score[j] ? 1 : score[i] == score[j] ? 0.5 : 0;
    }
  }
  return above / pairs;
}

TEST(MetricsTest, AUCIsExactForScoresAtTheThresholds) {
  std::vector<float> label, score;
  for (int i = 0; i < 300; ++i) {
    label.push_back(static_cast<float>(i * 7 % 10 < 3));
    score.push_back(static_cast<float>((i * 31 + (i * 7 % 10 < 3 ? 40 : 0)) % 200) / 199.0f);
  }
  const metrics::AUC auc({});
  auc->update_state(Tensor::from(label, {300}), Tensor::from(score, {300, 1}));
  EXPECT_NEAR(auc->result(), pairwise_auc(label, score), 1e-12);
}

TEST(MetricsTest, ResultsOfNothingAreZero) {
  for (const char* name : {"auc", "accuracy", "mse", "precision", "recall", "mean"}) {
    EXPECT_EQ(metrics::get(name)->result(), 0) << name;
  }
}

TEST(MetricsTest, ResetForgetsTheBatches) {
  const metrics::MeanSquaredError metric({});
  metric->update_state(Tensor::zeros({2}), Tensor::full<float>({2}, 3));
  EXPECT_EQ(metric->result(), 9);
  metric->reset_state();
  EXPECT_EQ(metric->result(), 0);
}

TEST(MetricsTest, MeanTakesValuesAlone) {
  const metrics::Mean mean({});
  mean->update_state(Tensor::from<float>({1, 2}, {2}));
  mean->update_state(Tensor::from<float>({6}, {1}));
  EXPECT_EQ(mean->result(), 3);
}

TEST(MetricsTest, AccuracyChoosesByTheShapes) {
  const MetricHandle binary = metrics::get("accuracy");
  binary->update_state(Tensor::from<float>({1, 0}, {2}), Tensor::from<float>({0.9f, 0.8f}, {2, 1}));
  EXPECT_EQ(binary->result(), 0.5);
  const MetricHandle sparse = metrics::get("acc");
  sparse->update_state(Tensor::from<int64_t>({1, 0}, {2, 1}),
                       Tensor::from<float>({0.1f, 0.9f, 0.4f, 0.6f}, {2, 2}));
  EXPECT_EQ(sparse->result(), 0.5);
  const MetricHandle categorical = metrics::get("accuracy");
  categorical->update_state(Tensor::from<float>({0, 1, 1, 0}, {2, 2}),
                            Tensor::from<float>({0.1f, 0.9f, 0.4f, 0.6f}, {2, 2}));
  EXPECT_EQ(categorical->result(), 0.5);
}

TEST(MetricsTest, ReplicasGatherForThemselvesAndTheResultIsOfAll) {
  distribute::TPUStrategy strategy({.num_cores = 4});
  const auto scope = strategy.scope();
  const metrics::MeanSquaredError metric({});
  const auto numbers = strategy.distribute_values_from_function([](int r) { return r; });
  strategy.run(
      [&](int r) {
        metric->update_state(Tensor::zeros({1}), Tensor::full<float>({1}, static_cast<float>(r)));
        EXPECT_THROW(metric->result(), RuntimeError);
      },
      numbers);
  EXPECT_EQ(metric->result(), (0 + 1 + 4 + 9) / 4.0);
  metric->reset_state();
  EXPECT_EQ(metric->result(), 0);
}

TEST(MetricsTest, RebuildMakesTheSumsForTheStrategyOfNow) {
  const metrics::Mean metric({});
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  metric->rebuild();
  const auto numbers = strategy.distribute_values_from_function([](int r) { return r + 1; });
  strategy.run(
      [&](int r) { metric->update_state(Tensor::full<float>({1}, static_cast<float>(r))); },
      numbers);
  EXPECT_EQ(metric->result(), 1.5);
}

TEST(MetricsTest, TapesRecordNothing) {
  const Tensor p = Tensor::full<float>({1}, 2);
  GradientTape tape;
  tape.watch(p);
  const metrics::MeanSquaredError metric({});
  metric->update_state(Tensor::zeros({1}), p);
  EXPECT_FALSE(tape.input_gradient(metric->state(), {p})[0]);
}

TEST(MetricsTest, RefusePredictionsThatAreNaNBeforeAnySumChanges) {
  const metrics::AUC auc({.name = "area"});
  const Tensor y = Tensor::from<float>({0, 1}, {2});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  try {
    auc->update_state(y, Tensor::from<float>({0.5f, nan}, {2}));
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("area"), std::string::npos) << error.what();
  }
  auc->update_state(y, Tensor::from<float>({0.2f, 0.8f}, {2}));
  EXPECT_NEAR(auc->result(), 1, 1e-12);
}

TEST(MetricsTest, AUCRefusesWhatIsNoProbability) {
  const metrics::AUC auc({});
  const Tensor y = Tensor::from<float>({0, 1}, {2});
  EXPECT_THROW(auc->update_state(y, Tensor::from<float>({0.5f, 1.5f}, {2})), ValueError);
  EXPECT_THROW(auc->update_state(y, Tensor::from<float>({-0.5f, 0.5f}, {2})), ValueError);
  auc->update_state(y, Tensor::from<float>({0, 1.000001f}, {2}));
  EXPECT_NEAR(auc->result(), 1, 1e-12);
}

TEST(MetricsTest, RefuseShapesThatDoNotFit) {
  const metrics::MeanSquaredError metric({});
  EXPECT_THROW(metric->update_state(Tensor::zeros({2}), Tensor::zeros({3})), ValueError);
  EXPECT_THROW(metric->update_state(Tensor::zeros({2}), Tensor::zeros({2}), Tensor::zeros({3})),
               ValueError);
  const metrics::SparseCategoricalAccuracy sparse({});
  EXPECT_THROW(sparse->update_state(Tensor::zeros({3}), Tensor::zeros({2, 4})), ValueError);
  const metrics::Precision precision({.class_id = 2});
  EXPECT_THROW(precision->update_state(Tensor::zeros({1, 2}), Tensor::zeros({1, 2})), ValueError);
}

TEST(MetricsTest, RefuseBadOptions) {
  EXPECT_THROW(metrics::AUC({.num_thresholds = 1}), ValueError);
  EXPECT_THROW(metrics::AUC({.curve = "roc"}), ValueError);
  EXPECT_THROW(metrics::AUC({.summation_method = "trapezoid"}), ValueError);
  EXPECT_THROW(metrics::AUC({.thresholds = std::vector<double>{1.5}}), ValueError);
  EXPECT_THROW(metrics::AUC({.multi_label = true}), NotImplementedError);
  EXPECT_THROW(metrics::BinaryAccuracy({.threshold = 1}), ValueError);
  EXPECT_THROW(metrics::Precision({.thresholds = 2.0}), ValueError);
  EXPECT_THROW(metrics::Recall({.top_k = 1}), NotImplementedError);
  EXPECT_THROW(metrics::get("area"), ValueError);
}

TEST(MetricsTest, ConfigsMakeEqualMetrics) {
  const metrics::AUC auc({.name = "pr", .num_thresholds = 50, .curve = "PR"});
  const Config config = metrics::serialize(*auc);
  EXPECT_EQ(metrics::serialize(*metrics::deserialize(config)), config);
  EXPECT_EQ(MetricArgument("auc").config(), Config("auc"));
  EXPECT_EQ(MetricArgument(auc).config(), config);
}

}  // namespace
}  // namespace keel
