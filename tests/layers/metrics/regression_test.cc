#include <keel/layers/metrics/regression.h>

#include <cmath>

#include <gtest/gtest.h>

namespace keel::regression_metrics_test {

double mean_of_two(const MetricHandle& metric) {
  metric->update_state(Tensor::from<float>({1, 2, 3, 1, 2, 3}, {2, 3}),
                       Tensor::from<float>({3, 5, 7, 3, 2, 1}, {2, 3}));
  return metric->result();
}

TEST(CorrelationTest, PearsonDoesNotMindScaleAndOffset) {
  EXPECT_NEAR(mean_of_two(metrics::PearsonCorrelation({})), (1 - 1) / 2.0, 1e-6);
  const metrics::PearsonCorrelation first({});
  first->update_state(Tensor::from<float>({1, 2, 3}, {1, 3}),
                      Tensor::from<float>({3, 5, 7}, {1, 3}));
  EXPECT_NEAR(first->result(), 1, 1e-6);
}

TEST(CorrelationTest, ConcordanceMindsBoth) {
  const double first = 2 * (4 / 3.0) / (2 / 3.0 + 8 / 3.0 + 9);
  EXPECT_NEAR(mean_of_two(metrics::ConcordanceCorrelation({})), (first - 1) / 2, 1e-6);
}

TEST(CorrelationTest, SamplesMayBeColumns) {
  const metrics::PearsonCorrelation metric({.axis = 0});
  metric->update_state(Tensor::from<float>({1, 5, 2, 6}, {2, 2}),
                       Tensor::from<float>({1, 8, 3, 7}, {2, 2}));
  EXPECT_NEAR(metric->result(), 0, 1e-6);
}

// Two columns with the scores 1 - 2 / 8 and 1 - 2 / 2.
Tensor labels() { return Tensor::from<float>({0, 0, 2, 1, 4, 2}, {3, 2}); }
Tensor predictions() { return Tensor::from<float>({1, 0, 1, 2, 4, 1}, {3, 2}); }

Tensor result(const R2ScoreMetricOptions& options) {
  const metrics::R2Score metric(options);
  metric->update_state(labels(), predictions());
  return metric->result_tensor();
}

TEST(R2ScoreTest, IsThePartOfTheVarianceThatIsExplained) {
  EXPECT_EQ(result({.class_aggregation = {}}).to_vector<double>(), (std::vector<double>{.75, 0}));
  EXPECT_NEAR(result({}).item<double>(), .375, 1e-12);
  EXPECT_NEAR(result({.class_aggregation = "variance_weighted_average"}).item<double>(), .6, 1e-12);
}

// The adjusted score is 1 - (1 - .375) (n - 1) / (n - 1 - 1) with n = 6 elements, as in Keras
// 3.15.1. The development branch of Keras counts the 3 rows instead.
TEST(R2ScoreTest, IsAdjustedForRegressorsWhereThereAreSamples) {
  EXPECT_NEAR(result({.num_regressors = 1}).item<double>(), 1 - .625 * 5 / 4, 1e-12);
  EXPECT_NEAR(result({.num_regressors = 5}).item<double>(), .375, 1e-12);
}

TEST(R2ScoreTest, IsNanWithoutVarianceAndErrorsAsInKeras) {
  const metrics::R2Score metric({});
  metric->update_state(Tensor::full<float>({3, 1}, 2), Tensor::full<float>({3, 1}, 2));
  EXPECT_TRUE(std::isnan(metric->result()));
}

TEST(R2ScoreTest, LabelsThatDoNotVaryScoreZero) {
  const metrics::R2Score metric({});
  metric->update_state(Tensor::full<float>({2, 1}, 3), Tensor::from<float>({3, 4}, {2, 1}));
  EXPECT_EQ(metric->result(), 0);
}

TEST(R2ScoreTest, RefusesBadOptionsAndShapes) {
  EXPECT_THROW(metrics::R2Score({.class_aggregation = "sum"}), ValueError);
  EXPECT_THROW(metrics::R2Score({.num_regressors = -1}), ValueError);
  const Tensor deep = Tensor::zeros({1, 2, 2});
  EXPECT_THROW(metrics::R2Score({})->update_state(deep, deep), ValueError);
}

}  // namespace keel::regression_metrics_test
