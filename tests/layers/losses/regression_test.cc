#include <keel/layers/losses/regression.h>

#include <cmath>

#include <gtest/gtest.h>

namespace keel::regression_test {

Tensor labels() { return Tensor::from<double>({1, -2}, {1, 2}); }
Tensor predictions() { return Tensor::from<double>({1.5, 2}, {1, 2}); }

TEST(RegressionLossTest, AreTheMeansTheirNamesSay) {
  EXPECT_NEAR(losses::mean_squared_error(labels(), predictions()).item<double>(), 16.25 / 2, 1e-12);
  EXPECT_NEAR(losses::mean_absolute_error(labels(), predictions()).item<double>(), 2.25, 1e-12);
  EXPECT_NEAR(losses::mean_absolute_percentage_error(labels(), predictions()).item<double>(), 125,
              1e-10);
  const double first = std::log(2.5 / 2), second = std::log(3.0);
  EXPECT_NEAR(losses::mean_squared_logarithmic_error(labels(), predictions()).item<double>(),
              (first * first + second * second) / 2, 1e-6);
  EXPECT_NEAR(losses::log_cosh(labels(), predictions()).item<double>(),
              (std::log(std::cosh(.5)) + std::log(std::cosh(4.0))) / 2, 1e-12);
}

TEST(RegressionLossTest, HuberIsLinearBeyondDelta) {
  EXPECT_NEAR(losses::huber(labels(), predictions()).item<double>(), (.125 + 3.5) / 2, 1e-12);
  EXPECT_NEAR(losses::huber(labels(), predictions(), 10).item<double>(), 16.25 / 4, 1e-12);
  EXPECT_THROW(losses::Huber({.delta = 0}), ValueError);
}

TEST(RegressionLossTest, LogCoshDoesNotOverflow) {
  const Tensor y = Tensor::zeros({1, 1});
  EXPECT_NEAR(losses::log_cosh(y, Tensor::full<float>({1, 1}, 1000)).item<float>(),
              1000 - std::log(2.0), 1e-3);
  EXPECT_NEAR(losses::log_cosh(y, Tensor::full<float>({1, 1}, -1000)).item<float>(),
              1000 - std::log(2.0), 1e-3);
}

TEST(RegressionLossTest, PercentagesOfZeroAreLargeButFinite) {
  const Tensor y = Tensor::zeros({1, 1});
  EXPECT_FLOAT_EQ(
      losses::mean_absolute_percentage_error(y, Tensor::full<float>({1, 1}, 1e-7f)).item<float>(),
      100);
}

}  // namespace keel::regression_test
