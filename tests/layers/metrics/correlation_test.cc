#include <keel/layers/metrics/correlation.h>

#include <gtest/gtest.h>

namespace keel::correlation_test {

double result(const MetricHandle& metric) {
  metric->update_state(Tensor::from<float>({1, 2, 3, 1, 2, 3}, {2, 3}),
                       Tensor::from<float>({3, 5, 7, 3, 2, 1}, {2, 3}));
  return metric->result();
}

TEST(CorrelationTest, PearsonDoesNotMindScaleAndOffset) {
  EXPECT_NEAR(result(metrics::PearsonCorrelation({})), (1 - 1) / 2.0, 1e-6);
  const metrics::PearsonCorrelation first({});
  first->update_state(Tensor::from<float>({1, 2, 3}, {1, 3}),
                      Tensor::from<float>({3, 5, 7}, {1, 3}));
  EXPECT_NEAR(first->result(), 1, 1e-6);
}

TEST(CorrelationTest, ConcordanceMindsBoth) {
  const double first = 2 * (4 / 3.0) / (2 / 3.0 + 8 / 3.0 + 9);
  EXPECT_NEAR(result(metrics::ConcordanceCorrelation({})), (first - 1) / 2, 1e-6);
}

TEST(CorrelationTest, SamplesMayBeColumns) {
  const metrics::PearsonCorrelation metric({.axis = 0});
  metric->update_state(Tensor::from<float>({1, 5, 2, 6}, {2, 2}),
                       Tensor::from<float>({1, 8, 3, 7}, {2, 2}));
  EXPECT_NEAR(metric->result(), 0, 1e-6);
}

}  // namespace keel::correlation_test
