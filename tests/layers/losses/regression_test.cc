#include <keel/layers/losses/regression.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>

namespace keel::regression_losses_test {

Tensor labels() { return Tensor::from<double>({1, -2}, {1, 2}); }
Tensor predictions() { return Tensor::from<double>({1.5, 2}, {1, 2}); }

TEST(RegressionLossTest, AreMeansOfTheirErrors) {
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
  EXPECT_THROW(losses::huber(labels(), predictions(), 0), ValueError);
  EXPECT_THROW(losses::huber(labels(), predictions(), std::nan("")), ValueError);
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

TEST(CosineSimilarityLossTest, IsMinusTheCosine) {
  const Tensor y = Tensor::from<double>({1, 0, 3, 4}, {2, 2});
  const Tensor p = Tensor::from<double>({2, 2, -6, -8}, {2, 2});
  const Tensor rows = losses::cosine_similarity(y, p);
  EXPECT_NEAR(rows.data<double>()[0], -std::sqrt(.5), 1e-12);
  EXPECT_NEAR(rows.data<double>()[1], 1, 1e-12);
  const Tensor columns = losses::cosine_similarity(y, p, 0);
  EXPECT_NEAR(columns.data<double>()[1], 1 * 32 / (4 * std::sqrt(68.0)), 1e-12);
}

TEST(CosineSimilarityLossTest, AZeroVectorIsLikeNothing) {
  const Tensor y = Tensor::from<float>({1, 2}, {1, 2});
  const Tensor p = Tensor::zeros({1, 2});
  GradientTape tape;
  tape.watch(p);
  const Tensor loss = losses::cosine_similarity(y, p);
  EXPECT_EQ(loss.item<float>(), 0);
  const Tensor gradient = tape.input_gradient(loss, {p})[0].dense();
  for (const float g : gradient.data<float>()) EXPECT_TRUE(std::isfinite(g));
}

Tensor members() { return Tensor::from<double>({1, 1, 0, 0, 1, 0}, {2, 3}); }
Tensor predicted_members() { return Tensor::from<double>({1, 0, 1, 0, 1, 0}, {2, 3}); }

TEST(OverlapLossTest, DiceIsOneLessTwiceTheSharedPart) {
  EXPECT_NEAR(losses::dice(members(), predicted_members()).item<double>(), 1 - 4.0 / 6, 1e-7);
  const Tensor rows = losses::dice(members(), predicted_members(), {1});
  EXPECT_NEAR(rows.data<double>()[0], .5, 1e-7);
  EXPECT_NEAR(rows.data<double>()[1], 0, 1e-7);
}

TEST(OverlapLossTest, TverskyWeighsWhatIsExtraAndMissing) {
  EXPECT_NEAR(losses::tversky(members(), predicted_members()).item<double>(), 1 - 4.0 / 6, 1e-7);
  EXPECT_NEAR(losses::tversky(members(), predicted_members(), 1, 3).item<double>(), 1 - 2.0 / 6,
              1e-7);
  // Only a false negative is added.
  const Tensor none = Tensor::from<double>({1, 0, 0, 0, 1, 0}, {2, 3});
  EXPECT_NEAR(losses::tversky(members(), none, 1, 3).item<double>(), 1 - 2.0 / 5, 1e-7);
}

// Keras 3.4 to 3.15 weigh false negatives by alpha and false positives by beta, Keras 3.16 does the
// reverse. tests/savedmodel/keras/internal/keras_h5_test.cc reads the files of both.
TEST(OverlapLossTest, AlphaOfTverskyWeighsFalsePositives) {
  // tp = 1, fp = 0.5 and fn = 0.25.
  const Tensor y = Tensor::from<double>({1, 0.25, 0.0}, {3, 1});
  const Tensor p = Tensor::from<double>({1, 0.0, 0.5}, {3, 1});
  EXPECT_NEAR(losses::tversky(y, p, 0.8, 0.2).item<double>(), 1 - 1 / (1 + 0.4 + 0.05), 1e-6);
}

TEST(OverlapLossTest, WholeBatchesAreOneLoss) {
  for (const char* reduction : {"sum", "sum_over_batch_size", "none"}) {
    const losses::Dice loss({.reduction = reduction});
    EXPECT_EQ(loss->call(members(), predicted_members()).shape(), Shape({}));
  }
  const losses::Dice by_row({.axis = std::vector<int>{1}});
  EXPECT_NEAR(by_row->call(members(), predicted_members()).item<double>(), .25, 1e-7);
  // With weights, the loss of the whole batch counts once per row.
  EXPECT_NEAR(losses::Dice({})
                  ->call(members(), predicted_members(), Tensor::from<double>({1, 0}, {2}))
                  .item<double>(),
              1.0 / 6, 1e-7);
}

}  // namespace keel::regression_losses_test
