#include <keel/layers/losses/list_mle.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>

namespace keel::list_mle_test {

LossHandle list_mle(double temperature = 1) {
  return losses::ListMLELoss({.temperature = temperature, .reduction = "none"});
}

// For scores in the correct order: minus the sum of the log probabilities of the draws.
double by_hand(const std::vector<double>& scores) {
  double out = 0;
  for (size_t i = 0; i < scores.size(); ++i) {
    double left = 0;
    for (size_t j = i; j < scores.size(); ++j) left += std::exp(scores[j]);
    out -= std::log(std::exp(scores[i]) / left);
  }
  return out;
}

TEST(ListMLELossTest, IsTheLogProbabilityOfTheOrderOfTheLabels) {
  const Tensor y = Tensor::from<double>({1, 0, 1, 3, 2, 0, 1, 2, 3, 1.5}, {2, 5});
  const Tensor s = Tensor::from<double>({1, 3, 2, 4, .8, 1, 1.8, 2, 3, 2}, {2, 5});
  const Tensor found = list_mle()->call(y, s);
  ASSERT_EQ(found.shape(), Shape({2}));
  EXPECT_NEAR(found.data<double>()[0], by_hand({4, .8, 1, 2, 3}), 1e-12);
  EXPECT_NEAR(found.data<double>()[1], by_hand({3, 2, 2, 1.8, 1}), 1e-12);
  const Tensor hot = list_mle(.5)->call(y, s);
  EXPECT_NEAR(hot.data<double>()[0], by_hand({8, 1.6, 2, 4, 6}), 1e-12);
}

TEST(ListMLELossTest, EqualScoresGiveTheFactorial) {
  const Tensor y = Tensor::from<int64_t>({2, 1, 3}, {3});
  const Tensor found = list_mle()->call(y, Tensor::zeros({3}, DType::kFloat64));
  EXPECT_EQ(found.shape(), Shape({1}));
  EXPECT_NEAR(found.item<double>(), std::log(6), 1e-12);
}

TEST(ListMLELossTest, MasksAndNegativeLabelsLeaveItemsOut) {
  const double infinity = std::numeric_limits<double>::infinity();
  const Tensor y = Tensor::from<double>({2, 7, 0, 1}, {1, 4});
  const Tensor padded = Tensor::from<double>({2, -1, 0, 1}, {1, 4});
  const Tensor s = Tensor::from<double>({.5, infinity, .25, 1}, {1, 4});
  const Tensor mask = Tensor::from<bool>({true, false, true, true}, {1, 4});
  const double expected = by_hand({.5, 1, .25});
  EXPECT_NEAR(list_mle()->call(y.with_mask(mask), s).item<double>(), expected, 1e-12);
  EXPECT_NEAR(list_mle()->call(y, s.with_mask(mask)).item<double>(), expected, 1e-12);
  GradientTape tape;
  tape.watch(s);
  const Tensor loss = list_mle()->call(padded, s);
  EXPECT_NEAR(loss.item<double>(), expected, 1e-12);
  const Tensor gradient = tape.input_gradient(loss, {s})[0].dense();
  EXPECT_EQ(gradient.data<double>()[1], 0);
  EXPECT_TRUE(std::isfinite(gradient.data<double>()[0]));
}

TEST(ListMLELossTest, ListsWithoutItemsHaveNoLoss) {
  const Tensor none = Tensor::full<double>({1, 3}, -1);
  EXPECT_EQ(list_mle()->call(none, Tensor::full<double>({1, 3}, 2)).item<double>(), 0);
  EXPECT_EQ(list_mle()->call(Tensor::zeros({1, 0}), Tensor::zeros({1, 0})).item<float>(), 0);
}

TEST(ListMLELossTest, ScoresMayBeFarApart) {
  const Tensor y = Tensor::from<float>({2, 1, 0}, {1, 3});
  const Tensor s = Tensor::from<float>({-500, 500, -500}, {1, 3});
  EXPECT_FLOAT_EQ(list_mle()->call(y, s).item<float>(), 1000);
}

TEST(ListMLELossTest, WeightsAreOfLists) {
  const Tensor y = Tensor::from<double>({1, 0, 1, 0}, {2, 2}), s = Tensor::zeros({2, 2}, y.dtype());
  const Tensor found = list_mle()->call(y, s, Tensor::from<double>({1, 3}, {2}));
  EXPECT_NEAR(found.data<double>()[0], std::log(2), 1e-12);
  EXPECT_NEAR(found.data<double>()[1], 3 * std::log(2), 1e-12);
}

TEST(ListMLELossTest, WhatDoesNotFitIsRefused) {
  const Tensor deep = Tensor::zeros({2, 3, 4});
  EXPECT_THROW(list_mle()->call(deep, deep), ValueError);
  EXPECT_THROW(losses::ListMLELoss({.temperature = 0}), ValueError);
  const Tensor symbol = Tensor::symbolic({.shape = {2, kUnknown}});
  EXPECT_THROW(list_mle()->call(symbol, symbol), NotImplementedError);
}

}  // namespace keel::list_mle_test
