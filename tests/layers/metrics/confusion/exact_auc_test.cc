#include <map>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/random.h>
#include <keel/layers/metrics/confusion/auc.h>
#include <keel/layers/training/internal/per_replica_values.h>

namespace keel::exact_auc_test {

struct Sample {
  int64_t user = 0;
  bool positive = false;
  float score = 0, weight = 1;
};

// Computes the area pair by pair; 0 if there is no pair.
double area_by_hand(const std::vector<Sample>& samples) {
  double won = 0, pairs = 0;
  for (const Sample& a : samples) {
    for (const Sample& b : samples) {
      if (!a.positive || b.positive) continue;
      const double pair = double{a.weight} * b.weight;
      pairs += pair;
      won += pair * (a.score > b.score ? 1 : a.score == b.score ? .5 : 0);
    }
  }
  return pairs > 0 ? won / pairs : 0;
}

// The scores are multiples of 0.1, so there are many ties.
std::vector<Sample> random_samples(int n) {
  const RandomStream random{.seed = 3};
  std::vector<Sample> out;
  for (int i = 0; i < n; ++i) {
    const auto bits = random.bits(i);
    out.push_back({.user = bits[0] % 9,
                   .positive = bits[1] % 3 == 0,
                   .score = static_cast<float>(bits[2] % 10) / 10,
                   .weight = static_cast<float>(bits[3] % 4)});
  }
  return out;
}

struct Batch {
  Tensor labels, users, scores, weights;
};
Batch batch_of(std::span<const Sample> samples) {
  const int64_t n = std::ssize(samples);
  Batch out = {.labels = Tensor::zeros({n, 1}),
               .users = Tensor::zeros({n, 1}, DType::kInt64),
               .scores = Tensor::zeros({n, 1}),
               .weights = Tensor::zeros({n})};
  for (int64_t i = 0; i < n; ++i) {
    out.labels.mutable_data<float>()[i] = samples[i].positive ? 1 : 0;
    out.users.mutable_data<int64_t>()[i] = samples[i].user;
    out.scores.mutable_data<float>()[i] = samples[i].score;
    out.weights.mutable_data<float>()[i] = samples[i].weight;
  }
  return out;
}

TEST(ExactAUCTest, IsThePartOfPairsInTheRightOrder) {
  const metrics::ExactAUC metric({});
  metric->update_state(Tensor::from<float>({1, 0, 1, 0}, {4}),
                       Tensor::from<float>({.9f, .1f, .4f, .4f}, {4}));
  EXPECT_EQ(metric->result(), 3.5 / 4);
}

TEST(ExactAUCTest, AgreesWithAllPairs) {
  const std::vector<Sample> samples = random_samples(300);
  const Batch batch = batch_of(samples);
  const metrics::ExactAUC metric({});
  metric->update_state(batch.labels, batch.scores, batch.weights);
  EXPECT_NEAR(metric->result(), area_by_hand(samples), 1e-12);
}

TEST(ExactAUCTest, SeesDifferencesThatAHistogramDoesNot) {
  const Tensor y = Tensor::from<float>({0, 1}, {2});
  const Tensor p = Tensor::from<float>({.5f, .5f + 1e-6f}, {2});
  const metrics::AUC histogram({});
  histogram->update_state(y, p);
  EXPECT_LT(histogram->result(), .6);
  const metrics::ExactAUC exact({});
  exact->update_state(y, p);
  EXPECT_EQ(exact->result(), 1);
  // Predictions may be arbitrary numbers: logits need no sigmoid.
  exact->update_state(y, Tensor::from<float>({-50, 50}, {2}));
  EXPECT_EQ(exact->result(), 1);
}

TEST(ExactAUCTest, OneClassHasNoArea) {
  const metrics::ExactAUC metric({});
  metric->update_state(Tensor::zeros({3}), Tensor::full<float>({3}, .5f));
  EXPECT_EQ(metric->result(), 0);
  metric->update_state(Tensor::full<float>({1}, 1), Tensor::full<float>({1}, .75f));
  EXPECT_EQ(metric->result(), 1);
}

TEST(ExactAUCTest, MaskedPredictionsDoNotCount) {
  const metrics::ExactAUC metric({});
  const Tensor mask = Tensor::from<bool>({true, true, false}, {3});
  metric->update_state(Tensor::from<float>({1, 0, 1}, {3}),
                       Tensor::from<float>({.5f, .4f, .3f}, {3}).with_mask(mask));
  EXPECT_EQ(metric->result(), 1);
}

TEST(ExactAUCTest, NegativeWeightsAreRefusedBeforeAnythingIsKept) {
  const metrics::ExactAUC metric({});
  const Tensor y = Tensor::from<float>({1, 0}, {2}), p = Tensor::from<float>({1, 2}, {2});
  EXPECT_THROW(metric->update_state(y, p, Tensor::from<float>({1, -1}, {2})), ValueError);
  metric->update_state(y, Tensor::from<float>({2, 1}, {2}));
  EXPECT_EQ(metric->result(), 1);
}

TEST(ExactAUCTest, ReplicasKeepTheirOwnAndTheResultIsOfAll) {
  const std::vector<Sample> samples = random_samples(40);
  distribute::TPUStrategy strategy({.num_cores = 4});
  const auto [exact, gauc, alone] = [&] {
    const auto scope = strategy.scope();
    return std::tuple(metrics::ExactAUC({}), metrics::GAUC({}), metrics::GAUC({}));
  }();
  const auto parts = strategy.distribute_values_from_function(
      [&](int r) { return batch_of(std::span(samples).subspan(10 * r, 10)); });
  for (int epoch = 0; epoch < 2; ++epoch) {
    strategy.run(
        [&](const Batch& b) {
          exact->update_state(b.labels, b.scores, b.weights);
          gauc->update_state(metrics::labels_of_users(b.labels, b.users), b.scores, b.weights);
        },
        parts);
    EXPECT_NEAR(exact->result(), area_by_hand(samples), 1e-12);
    const Batch whole = batch_of(samples);
    alone->reset_state();
    alone->update_state(metrics::labels_of_users(whole.labels, whole.users), whole.scores,
                        whole.weights);
    EXPECT_EQ(gauc->result(), alone->result());
    exact->reset_state();
    gauc->reset_state();
    EXPECT_EQ(exact->result(), 0);
  }
}

TEST(ExactAUCTest, AnotherStrategyNeedsARebuild) {
  const metrics::ExactAUC metric({});
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Tensor y = Tensor::from<float>({1, 0}, {2});
  const auto numbers = strategy.distribute_values_from_function([](int r) { return r; });
  const auto update = [&](int) { metric->update_state(y, y); };
  EXPECT_THROW(strategy.run(update, numbers), RuntimeError);
  metric->rebuild();
  strategy.run(update, numbers);
  EXPECT_EQ(metric->result(), 1);
}

TEST(ExactAUCTest, BackupsFindNoSumsInIt) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const metrics::ExactAUC metric({});
  const Tensor values = values_of_replicas(strategy, metric->state());
  EXPECT_EQ(values.shape(), Shape({2, 0}));
  set_values_of_replicas(strategy, metric->state(), values);
}

TEST(GAUCTest, IsTheMeanAreaOfUsersByImpressions) {
  const metrics::GAUC metric({});
  // User 5: 2 of 2 pairs, 3 impressions; user 2: 0 of 1 pair, 2 impressions; user 7 has no negative
  // example.
  const Tensor y = Tensor::from<int64_t>({1, 5, 0, 5, 0, 2, 0, 5, 1, 2, 1, 7}, {6, 2});
  const Tensor p = Tensor::from<float>({.9f, .1f, .8f, .2f, .3f, .1f}, {6});
  metric->update_state(y, p);
  EXPECT_NEAR(metric->result(), 3. / 5, 1e-12);
}

TEST(GAUCTest, AgreesWithAllPairsOfEachUser) {
  const std::vector<Sample> samples = random_samples(300);
  std::map<int64_t, std::vector<Sample>> users;
  for (const Sample& s : samples) users[s.user].push_back(s);
  double sum = 0, impressions = 0;
  for (const auto& [user, own] : users) {
    double positive = 0, negative = 0;
    for (const Sample& s : own) (s.positive ? positive : negative) += s.weight;
    if (positive == 0 || negative == 0) continue;
    sum += (positive + negative) * area_by_hand(own);
    impressions += positive + negative;
  }
  const Batch batch = batch_of(samples);
  const metrics::GAUC metric({});
  metric->update_state(metrics::labels_of_users(batch.labels, batch.users), batch.scores,
                       batch.weights);
  EXPECT_NEAR(metric->result(), sum / impressions, 1e-12);
}

TEST(GAUCTest, LargeUsersStayApart) {
  const int64_t large = int64_t{1} << 60;
  const metrics::GAUC metric({});
  // A single user with these examples would have 2 of 4 pairs.
  const Tensor y = Tensor::from<int64_t>({1, large, 0, large, 1, large + 1, 0, large + 1}, {4, 2});
  metric->update_state(y, Tensor::from<float>({.9f, .8f, .2f, .1f}, {4, 1}));
  EXPECT_EQ(metric->result(), 1);
}

TEST(GAUCTest, WhatDoesNotFitIsRefused) {
  const metrics::GAUC metric({});
  EXPECT_THROW(metric->update_state(Tensor::zeros({2}), Tensor::zeros({2})), ValueError);
  EXPECT_THROW(metric->update_state(Tensor::zeros({2, 1}), Tensor::zeros({2})), ValueError);
  EXPECT_THROW(metric->update_state(Tensor::zeros({3, 2}), Tensor::zeros({2})), ValueError);
  EXPECT_THROW(metric->update_state(Tensor::from<float>({1, .5f}, {1, 2}), Tensor::zeros({1})),
               ValueError);
  EXPECT_THROW(metrics::labels_of_users(Tensor::zeros({2}), Tensor::zeros({3})), ValueError);
}

}  // namespace keel::exact_auc_test
