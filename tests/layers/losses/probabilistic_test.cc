#include <keel/layers/losses/probabilistic.h>

#include <cmath>

#include <gtest/gtest.h>

namespace keel::probabilistic_test {

TEST(ProbabilisticLossTest, KLDivergenceIsZeroBetweenEquals) {
  const Tensor p = Tensor::from<double>({.5, .5, 0}, {1, 3});
  EXPECT_EQ(losses::kl_divergence(p, p).item<double>(), 0);
  const Tensor q = Tensor::from<double>({.25, .75, 0}, {1, 3});
  EXPECT_NEAR(losses::kl_divergence(p, q).item<double>(),
              .5 * std::log(2.0) + .5 * std::log(2.0 / 3), 1e-12);
  const Tensor never = Tensor::from<double>({0, 1, 0}, {1, 3});
  EXPECT_TRUE(std::isfinite(losses::kl_divergence(p, never).item<double>()));
}

TEST(ProbabilisticLossTest, PoissonIsRateLessCountsTimesItsLogarithm) {
  const Tensor y = Tensor::from<double>({0, 3}, {1, 2});
  const Tensor p = Tensor::from<double>({1, 2}, {1, 2});
  EXPECT_NEAR(losses::poisson(y, p).item<double>(), (1 + 2 - 3 * std::log(2.0)) / 2, 1e-6);
}

}  // namespace keel::probabilistic_test
