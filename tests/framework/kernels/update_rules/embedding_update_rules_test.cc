#include <keel/framework/kernels/update_rules/embedding_update_rules.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>

#include "tests/support/expectations.h"

namespace keel::embedding_update_rules_test {

using testing_support::expect_near;

template <class T>
struct State {
  std::vector<T> value;
  std::vector<std::vector<T>> slots;
};

template <class T>
State<T> run(const UpdateRule& rule, const std::vector<T>& start,
             const std::vector<std::vector<T>>& gradients, double learning_rate) {
  State<T> state{start, {}};
  for (const Slot& slot : rule.slots()) {
    state.slots.emplace_back(start.size(), static_cast<T>(slot.initial));
  }
  for (const std::vector<T>& gradient : gradients) {
    std::vector<T*> slots;
    for (auto& slot : state.slots) slots.push_back(slot.data());
    rule.update(state.value.data(), gradient.data(), slots.data(), std::ssize(gradient),
                {.learning_rate = learning_rate});
  }
  return state;
}

// Every rule of embedding_update_rules.h except CustomRule.
std::vector<std::shared_ptr<const UpdateRule>> all_rules() {
  return {std::make_shared<AdagradMomentumRule>(AdagradMomentumRuleOptions{.momentum = 0.9}),
          std::make_shared<AdagradMomentumRule>(AdagradMomentumRuleOptions{
              .momentum = 0.5, .nesterov = true, .exponent = 3, .beta2 = 0.9, .epsilon = 0.1}),
          std::make_shared<MomentumRule>(0.9, false),
          std::make_shared<MomentumRule>(0.9, true),
          std::make_shared<RMSPropRule>(0.9, 0.5, 0.01),
          std::make_shared<ProximalAdagradRule>(0.1, 0.5, 0.3),
          std::make_shared<ProximalYogiRule>(ProximalYogiRuleOptions{.l1 = 0.1, .l2 = 0.2}),
          std::make_shared<FrequencyEstimatorRule>(
              FrequencyEstimatorRuleOptions{.tau = 0.1, .max_delta = 100, .outlier_threshold = 2})};
}

TEST(EmbeddingUpdateRulesTest, AdagradMomentumFollowsItsFormula) {
  const AdagradMomentumRule rule({.momentum = 0.5, .exponent = 4, .beta2 = 0.75, .epsilon = 0.25});
  const State<double> s = run<double>(rule, {1}, {{2}, {-1}}, 0.1);
  const double a1 = 0.25 * 4, u1 = 2 * std::pow(a1 + 0.25, -0.25), m1 = u1;
  const double a2 = 0.75 * a1 + 0.25, u2 = -std::pow(a2 + 0.25, -0.25), m2 = 0.5 * m1 + u2;
  expect_near(s.value, {1 - 0.1 * m1 - 0.1 * m2}, {.absolute = 1e-14});
  expect_near(s.slots[0], {a2}, {.absolute = 1e-14});
  expect_near(s.slots[1], {m2}, {.absolute = 1e-14});
}

TEST(EmbeddingUpdateRulesTest, TheMomentumSlotExcludesTheRate) {
  const State<double> s = run<double>(MomentumRule(0.5, false), {1}, {{2}, {-1}}, 0.1);
  expect_near(s.value, {1 - 0.1 * 2 - 0.1 * 0}, {.absolute = 1e-14});
  expect_near(s.slots[0], {0}, {.absolute = 1e-14});
  const State<double> n = run<double>(MomentumRule(0.5, true), {1}, {{2}}, 0.1);
  expect_near(n.value, {1 - 0.1 * (2 + 0.5 * 2)}, {.absolute = 1e-14});
}

TEST(EmbeddingUpdateRulesTest, RMSPropFollowsItsFormula) {
  const State<double> s = run<double>(RMSPropRule(0.75, 0.5, 0.25), {1}, {{2}, {-1}}, 0.1);
  const double ms1 = 0.25 * 4, mom1 = 0.1 * 2 / std::sqrt(ms1 + 0.25);
  const double ms2 = ms1, mom2 = 0.5 * mom1 - 0.1 / std::sqrt(ms2 + 0.25);
  expect_near(s.value, {1 - mom1 - mom2}, {.absolute = 1e-14});
  expect_near(s.slots[0], {ms2}, {.absolute = 1e-14});
  expect_near(s.slots[1], {mom2}, {.absolute = 1e-14});
}

TEST(EmbeddingUpdateRulesTest, ProximalAdagradShrinksWeightsTowardsZero) {
  const State<double> s =
      run<double>(ProximalAdagradRule(1, 0.5, 0.25), {1, -1, 0.01}, {{0, 0, 0}}, 0.1);
  expect_near(s.value, {0.95 / 1.025, -0.95 / 1.025, 0}, {.absolute = 1e-14});
  EXPECT_EQ(run<double>(ProximalAdagradRule(1, 0, 0), {3}, {{0}}, 0.1).value[0], 3);
}

TEST(EmbeddingUpdateRulesTest, ProximalYogiMovesItsSecondMomentTowardsTheSquare) {
  const ProximalYogiRule rule({.beta1 = 0, .beta2 = 0.75, .initial_accumulator_value = 4});
  const State<double> s = run<double>(rule, {1, 1, 1}, {{1, 2, 3}}, 0.1);
  expect_near(s.slots[0], {4 - 0.25, 4, 4 + 0.25 * 9}, {.absolute = 1e-14});
  expect_near(s.slots[1], {1, 2, 3}, {.absolute = 1e-14});
  expect_near(
      s.value,
      {1 - 0.1 / (std::sqrt(3.75) + 1e-3), 1 - 0.1 * 2 / (2 + 1e-3), 1 - 0.1 * 3 / (2.5 + 1e-3)},
      {.absolute = 1e-14});
}

TEST(EmbeddingUpdateRulesTest, TheFrequencyEstimatorAveragesGapsExceptOutliers) {
  const FrequencyEstimatorRule rule({.tau = 0.25, .max_delta = 50, .outlier_threshold = 2});
  expect_near(run<double>(rule, {40, 10, 30}, {{7, 7, 7}}, 60).value,
              {40 * 0.75 + 50 * 0.25, 50, 50}, {.absolute = 1e-14});
}

TEST(EmbeddingUpdateRulesTest, ZeroGradientsOnZeroSlotsAreFinite) {
  std::vector<std::shared_ptr<const UpdateRule>> rules = all_rules();
  rules.push_back(std::make_shared<RMSPropRule>(0.9, 0.5, 0));
  rules.push_back(std::make_shared<ProximalAdagradRule>(0, 0.5, 0.3));
  rules.push_back(std::make_shared<ProximalAdagradRule>(0, 0, 0));
  rules.push_back(std::make_shared<AdagradMomentumRule>(
      AdagradMomentumRuleOptions{.momentum = 0.9, .epsilon = 1e-60}));
  rules.push_back(std::make_shared<AdagradMomentumRule>(
      AdagradMomentumRuleOptions{.exponent = 0.5, .epsilon = 1e-60}));
  rules.push_back(std::make_shared<ProximalYogiRule>(
      ProximalYogiRuleOptions{.epsilon = 1e-60, .initial_accumulator_value = 0}));
  rules.push_back(std::make_shared<AdamRule>(
      AdamRuleOptions{.epsilon = 1e-30, .bias_correction = false, .sum_inside_sqrt = true}));
  for (size_t r = 0; r < rules.size(); ++r) {
    for (const float w : run<float>(*rules[r], {1, -2}, {{0, 0}, {0, 0}}, 0.1).value) {
      EXPECT_TRUE(std::isfinite(w)) << "rule " << r;
    }
  }
}

// Covers vector loops and their tails: an element alone gets the same bits as among others.
TEST(EmbeddingUpdateRulesTest, BitsOfAnElementDoNotDependOnOtherElements) {
  std::vector<float> start, gradient;
  for (int i = 0; i < 37; ++i) {
    start.push_back(std::sin(1.0F + static_cast<float>(i)));
    gradient.push_back(std::cos(3.0F * static_cast<float>(i)));
  }
  for (const auto& rule : all_rules()) {
    const std::vector<float> whole = run<float>(*rule, start, {gradient, gradient}, 0.05).value;
    for (int i = 0; i < 37; ++i) {
      const std::vector<float> g = {gradient[i]};
      EXPECT_EQ(run<float>(*rule, {start[i]}, {g, g}, 0.05).value[0], whole[i]) << i;
    }
  }
}

TEST(EmbeddingUpdateRulesTest, OnlyProximalAdagradWithoutPenaltyIgnoresZeroGradients) {
  for (const auto& rule : all_rules()) EXPECT_TRUE(rule->moves_without_gradient());
  EXPECT_FALSE(ProximalAdagradRule(0.1, 0, 0).moves_without_gradient());
  EXPECT_TRUE(CustomRule({}, {}).moves_without_gradient());
}

TEST(EmbeddingUpdateRulesTest, AnEngineRuleRenamesTheSlotsOfAnother) {
  const EngineRule rule(std::make_shared<AdagradRule>(0.25, 0),
                        std::vector<std::string>{"accumulators"});
  EXPECT_EQ(rule.slots().at(0).name, "accumulators");
  EXPECT_EQ(rule.slots().at(0).initial, 0.25);
  EXPECT_FALSE(rule.moves_without_gradient());
  expect_near(run<double>(rule, {1}, {{0.4}}, 0.1).value, {1 - 0.04 / std::sqrt(0.41)},
              {.absolute = 1e-14});
}

TEST(EmbeddingUpdateRulesTest, ACustomRuleSeesTheWholeRow) {
  const CustomRule rule(
      [](const CustomRow& r) {
        float norm = 0;
        for (const float g : r.gradient) norm += g * g;
        for (size_t i = 0; i < r.row.size(); ++i) {
          r.slot(0)[i] += norm;
          r.row[i] -= static_cast<float>(r.learning_rate * r.hyperparameters[1]) * r.gradient[i];
        }
      },
      {"norms"});
  EXPECT_EQ(rule.slots().at(0).name, "norms");
  std::vector<float> row = {1, 2}, slot = {0, 1};
  const std::vector<float> gradient = {3, 4};
  float* slots[] = {slot.data()};
  const std::vector<double> hyperparameters = {9, 0.5};
  rule.update(row.data(), gradient.data(), slots, 2,
              {.learning_rate = 0.5, .hyperparameters = hyperparameters});
  EXPECT_EQ(row, (std::vector<float>{0.25, 1}));
  EXPECT_EQ(slot, (std::vector<float>{25, 26}));
  EXPECT_THROW(run<double>(rule, {1}, {{1}}, 0.1), NotImplementedError);
}

}  // namespace keel::embedding_update_rules_test
