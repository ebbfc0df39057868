#include <keel/layers/metrics/classification.h>

#include <gtest/gtest.h>

namespace keel::classification_metrics_test {

// Classes 0 and 1 have one true positive each, class 2 has a false negative, and class 0 a false
// positive.
void update(const MetricHandle& metric) {
  metric->update_state(Tensor::from<float>({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3}),
                       Tensor::from<float>({.8f, .1f, .1f, .2f, .7f, .1f, .5f, .2f, .3f}, {3, 3}));
}

double result(const MetricHandle& metric) {
  update(metric);
  return metric->result();
}

TEST(FScoreTest, IsComputedForEachClass) {
  const metrics::F1Score metric({});
  update(metric);
  const auto scores = metric->result_tensor().to_vector<double>();
  ASSERT_EQ(scores.size(), 3u);
  EXPECT_NEAR(scores[0], 2 / 3.0, 1e-6);
  EXPECT_NEAR(scores[1], 1, 1e-6);
  EXPECT_EQ(scores[2], 0);
  EXPECT_NEAR(metric->result(), 5 / 9.0, 1e-6);  // the mean
}

TEST(FScoreTest, AveragesMakeOneNumber) {
  EXPECT_NEAR(result(metrics::F1Score({.average = "macro"})), 5 / 9.0, 1e-6);
  EXPECT_NEAR(result(metrics::F1Score({.average = "weighted"})), 5 / 9.0, 1e-6);
  EXPECT_NEAR(result(metrics::F1Score({.average = "micro"})), 2 / 3.0, 1e-6);
}

TEST(FScoreTest, BetaCountsRecallMore) {
  const metrics::FBetaScore metric({.beta = 2});
  update(metric);
  EXPECT_NEAR(metric->result_tensor().data<double>()[0], 5 * .5 / (4 * .5 + 1), 1e-6);
}

TEST(FScoreTest, AThresholdMaySelectAnyNumberOfClasses) {
  EXPECT_NEAR(result(metrics::F1Score({.average = "micro", .threshold = .15})), 2 * 3 / 9.0, 1e-6);
  EXPECT_EQ(result(metrics::F1Score({.average = "micro", .threshold = 1})), 0);
}

TEST(FScoreTest, ARowOfZerosPredictsNothing) {
  const metrics::F1Score metric({.average = "micro"});
  metric->update_state(Tensor::from<float>({0, 1}, {1, 2}), Tensor::zeros({1, 2}));
  metric->update_state(Tensor::from<float>({0, 1}, {1, 2}), Tensor::from<float>({0, 1}, {1, 2}));
  EXPECT_NEAR(metric->result(), 2 / 3.0, 1e-6);
}

TEST(FScoreTest, RejectsInvalidOptionsAndShapes) {
  EXPECT_THROW(metrics::F1Score({.average = "mean"}), ValueError);
  EXPECT_THROW(metrics::F1Score({.threshold = 0}), ValueError);
  EXPECT_THROW(metrics::F1Score({.threshold = 1.5}), ValueError);
  EXPECT_THROW(metrics::FBetaScore({.beta = 0}), ValueError);
  const metrics::F1Score metric({});
  EXPECT_THROW(metric->update_state(Tensor::zeros({1, 2, 2}), Tensor::zeros({1, 2, 2})),
               ValueError);
  update(metric);
  EXPECT_THROW(metric->update_state(Tensor::zeros({1, 2}), Tensor::zeros({1, 2})), ValueError);
}

}  // namespace keel::classification_metrics_test
