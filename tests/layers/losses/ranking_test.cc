// Tests layers/losses/internal/item_lists.cc.
#include <keel/layers/losses/ranking.h>

#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

namespace keel::ranking_losses_test {

using Numbers = std::vector<double>;

const Numbers kLabels = {1, 0, 1, 3, 2, 0, 1, 2, 3, 1.5};
const Numbers kScores = {1, 3, 2, 4, .8, 1, 1.8, 2, 3, 2};
constexpr int kItems = 5;

Tensor lists(const Numbers& values) { return Tensor::from(values, {2, kItems}); }

// Computes the loss of each item pair by pair. `d` is the score difference.
Numbers by_hand(const std::function<double(double d)>& loss, const std::vector<bool>& valid) {
  Numbers out(kLabels.size());
  for (int i = 0; i < 2 * kItems; ++i) {
    for (int j = i / kItems * kItems; j < (i / kItems + 1) * kItems; ++j) {
      const bool pair = valid[i] && valid[j] && kLabels[i] > kLabels[j];
      if (pair) out[i] += loss(kScores[i] - kScores[j]);
    }
  }
  return out;
}

void expect_near(const Tensor& found, const Numbers& expected) {
  ASSERT_EQ(found.size(), std::ssize(expected));
  for (int64_t i = 0; i < found.size(); ++i) {
    EXPECT_NEAR(found.data<double>()[i], expected[i], 1e-12) << "item " << i;
  }
}

struct PairwiseCase {
  LossHandle loss;
  std::function<double(double)> of_difference;
};

std::vector<PairwiseCase> cases(double temperature) {
  const auto scaled = [=](const std::function<double(double)>& loss) {
    return [=](double d) { return loss(d / temperature); };
  };
  return {{losses::PairwiseHingeLoss({.temperature = temperature, .reduction = "none"}),
           scaled([](double d) { return std::max(0.0, 1 - d); })},
          {losses::PairwiseLogisticLoss({.temperature = temperature, .reduction = "none"}),
           scaled([](double d) { return std::log(1 + std::exp(-d)); })},
          {losses::PairwiseSoftZeroOneLoss({.temperature = temperature, .reduction = "none"}),
           scaled([](double d) { return 1 - 1 / (1 + std::exp(-d)); })}};
}

TEST(PairwiseLossTest, AddsTheLossesOfPairsInTheOrderOfTheLabels) {
  for (const double temperature : {1.0, .5}) {
    for (const PairwiseCase& c : cases(temperature)) {
      SCOPED_TRACE(c.loss->class_name());
      const Tensor found = c.loss->call(lists(kLabels), lists(kScores));
      EXPECT_EQ(found.shape(), Shape({2, kItems}));
      expect_near(found, by_hand(c.of_difference, std::vector<bool>(10, true)));
    }
  }
}

TEST(PairwiseLossTest, HingeOfThreeItemsIsKnown) {
  const losses::PairwiseHingeLoss loss({.reduction = "none"});
  const Tensor found = loss->call(Tensor::from<double>({2, 1, 0}, {1, 3}),
                                  Tensor::from<double>({1, 2.5, 0}, {1, 3}));
  // Item 0: 1 - (1 - 2.5) and 1 - (1 - 0); item 1: 1 - 2.5 is negative.
  expect_near(found, {2.5, 0, 0});
}

TEST(PairwiseLossTest, MasksAndNegativeLabelsLeaveItemsOutOfAllPairs) {
  std::vector<bool> valid(10, true);
  valid[8] = valid[9] = false;
  const Tensor mask = Tensor::from(valid, {2, kItems});
  Numbers padded = kLabels, infinite = kScores;
  padded[8] = padded[9] = -1;
  infinite[8] = std::numeric_limits<double>::infinity();
  infinite[9] = -infinite[8];
  for (const PairwiseCase& c : cases(1)) {
    SCOPED_TRACE(c.loss->class_name());
    const Numbers expected = by_hand(c.of_difference, valid);
    expect_near(c.loss->call(lists(kLabels).with_mask(mask), lists(infinite)), expected);
    expect_near(c.loss->call(lists(kLabels), lists(infinite).with_mask(mask)), expected);
    expect_near(c.loss->call(lists(padded), lists(infinite)), expected);
  }
}

TEST(PairwiseLossTest, MaskedItemsCountInMeans) {
  const Tensor mask = Tensor::from<bool>({true, true, false, false}, {1, 4});
  const Tensor y = Tensor::from<double>({1, 0, 1, 0}, {1, 4}), s = Tensor::zeros({1, 4}, y.dtype());
  const losses::PairwiseHingeLoss loss({});
  EXPECT_EQ(loss->call(y.with_mask(mask), s).item<double>(), .25);
  EXPECT_EQ(loss->call(y, s.with_mask(mask)).item<double>(), .25);
}

TEST(PairwiseLossTest, AMaskMayBeOfWholeLists) {
  const losses::PairwiseHingeLoss loss({.reduction = "none"});
  const Tensor mask = Tensor::from<bool>({true, false}, {2});
  std::vector<bool> valid(10, true);
  std::fill(valid.begin() + kItems, valid.end(), false);
  expect_near(loss->call(lists(kLabels), lists(kScores).with_mask(mask)),
              by_hand([](double d) { return std::max(0.0, 1 - d); }, valid));
}

TEST(PairwiseLossTest, GradientsOfItemsLeftOutAreZero) {
  Tensor s = Tensor::from<double>({1, std::numeric_limits<double>::infinity(), 0}, {1, 3});
  const Tensor y = Tensor::from<double>({1, -1, 0}, {1, 3});
  for (const PairwiseCase& c : cases(1)) {
    GradientTape tape;
    tape.watch(s);
    const Tensor loss = ops::sum(c.loss->call(y, s));
    const Tensor gradient = tape.input_gradient(loss, {s})[0].dense();
    EXPECT_EQ(gradient.data<double>()[1], 0) << c.loss->class_name();
    EXPECT_TRUE(std::isfinite(gradient.data<double>()[0])) << c.loss->class_name();
  }
}

TEST(PairwiseLossTest, SquaredErrorsAreOfAllPairsAndKnowNoTemperature) {
  Numbers expected(10);
  for (int i = 0; i < 10; ++i) {
    for (int j = i / kItems * kItems; j < (i / kItems + 1) * kItems; ++j) {
      expected[i] += std::pow(kLabels[i] - kLabels[j] - (kScores[i] - kScores[j]), 2);
    }
  }
  for (const double temperature : {1.0, .5}) {
    const losses::PairwiseMeanSquaredError loss({.temperature = temperature, .reduction = "none"});
    expect_near(loss->call(lists(kLabels), lists(kScores)), expected);
  }
}

TEST(PairwiseLossTest, WeightsAreOfListsOrOfItems) {
  const losses::PairwiseHingeLoss loss({.reduction = "none"});
  const Numbers plain = loss->call(lists(kLabels), lists(kScores)).to_vector<double>();
  Numbers weights(10), of_lists = plain, of_items = plain;
  for (int i = 0; i < 10; ++i) {
    weights[i] = i;
    of_items[i] *= i;
    of_lists[i] *= i < kItems ? 2 : 3;
  }
  expect_near(loss->call(lists(kLabels), lists(kScores), lists(weights)), of_items);
  expect_near(loss->call(lists(kLabels), lists(kScores), Tensor::from<double>({2, 3}, {2})),
              of_lists);
}

TEST(PairwiseLossTest, OneListNeedsNoBatch) {
  const losses::PairwiseLogisticLoss loss({.reduction = "none"});
  const Tensor y = Tensor::from<int32_t>({1, 0}, {2});
  const Tensor found = loss->call(y, Tensor::from<double>({0, 0}, {2}));
  EXPECT_EQ(found.shape(), Shape({1, 2}));
  expect_near(found, {std::log(2), 0});
}

TEST(PairwiseLossTest, ShapesAndOptionsThatDoNotFitAreRefused) {
  const losses::PairwiseHingeLoss loss({});
  const Tensor deep = Tensor::zeros({2, 3, 4});
  EXPECT_THROW(loss->call(deep, deep), ValueError);
  EXPECT_THROW(loss->call(Tensor::zeros({2, 3}), Tensor::zeros({2, 4})), ValueError);
  EXPECT_THROW(loss->call(Tensor::zeros({2}), Tensor::zeros({2}, DType::kInt32)), TypeError);
  EXPECT_THROW(losses::PairwiseHingeLoss({.temperature = 0}), ValueError);
  EXPECT_THROW(losses::PairwiseMeanSquaredError({.temperature = -1}), ValueError);
}

TEST(PairwiseLossTest, ConfigsAreThoseOfKerasRs) {
  EXPECT_EQ(to_json(losses::PairwiseSoftZeroOneLoss({.temperature = 2})->get_config()),
            R"({"name": "pairwise_soft_zero_one_loss", "reduction": "sum_over_batch_size", )"
            R"("temperature": 2.0})");
  EXPECT_EQ(losses::get("pairwise_mean_squared_error")->class_name(), "PairwiseMeanSquaredError");
}

LossHandle list_mle(double temperature = 1) {
  return losses::ListMLELoss({.temperature = temperature, .reduction = "none"});
}

// For scores in the correct order: minus the sum of the log probabilities of the draws.
double list_mle_by_hand(const std::vector<double>& scores) {
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
  EXPECT_NEAR(found.data<double>()[0], list_mle_by_hand({4, .8, 1, 2, 3}), 1e-12);
  EXPECT_NEAR(found.data<double>()[1], list_mle_by_hand({3, 2, 2, 1.8, 1}), 1e-12);
  const Tensor hot = list_mle(.5)->call(y, s);
  EXPECT_NEAR(hot.data<double>()[0], list_mle_by_hand({8, 1.6, 2, 4, 6}), 1e-12);
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
  const double expected = list_mle_by_hand({.5, 1, .25});
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

}  // namespace keel::ranking_losses_test
