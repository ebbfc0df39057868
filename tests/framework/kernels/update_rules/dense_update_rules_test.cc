#include <keel/framework/kernels/update_rules/dense_update_rules.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

namespace keel::dense_update_rules_test {

using Rules = std::vector<std::shared_ptr<const UpdateRule>>;

Rules all_rules(double epsilon = 1e-7) {
  Rules out;
  for (const bool centered : {false, true}) {
    for (const double momentum : {0.0, 0.5}) {
      out.push_back(std::make_shared<KerasRMSpropRule>(
          KerasRMSpropRuleOptions{.momentum = momentum, .epsilon = epsilon, .centered = centered}));
    }
  }
  const MomentRuleOptions moments = {.epsilon = epsilon};
  out.push_back(std::make_shared<AdadeltaRule>(0.95, epsilon));
  out.push_back(std::make_shared<AdamaxRule>(moments));
  out.push_back(std::make_shared<NadamRule>(moments));
  out.push_back(std::make_shared<LionRule>(0.9, 0.99));
  out.push_back(std::make_shared<LambRule>(moments));
  return out;
}

// A variable, its slots and the shared slots, updated by a rule.
template <class T>
struct State {
  State(const UpdateRule& rule_, std::vector<T> start) : rule(rule_), value(std::move(start)) {
    for (const Slot& slot : rule.slots()) {
      slots.emplace_back(value.size(), static_cast<T>(slot.initial));
    }
    for (const Slot& slot : rule.shared_slots()) shared.push_back(slot.initial);
  }

  void step(const std::vector<T>& gradient, double learning_rate) {
    Step step = {.learning_rate = learning_rate, .iteration = iteration++};
    rule.step_shared(shared, step);
    step.shared = shared;
    std::vector<T*> pointers;
    for (auto& slot : slots) pointers.push_back(slot.data());
    rule.update(value.data(), gradient.data(), pointers.data(), std::ssize(gradient), step);
  }

  const UpdateRule& rule;
  std::vector<T> value;
  std::vector<std::vector<T>> slots;
  std::vector<double> shared;
  int64_t iteration = 0;
};

TEST(DenseUpdateRulesTest, RMSpropDividesByTheRootOfTheMeanSquare) {
  const KerasRMSpropRule rule({.rho = 0.75, .momentum = 0.5, .epsilon = 0});
  State<double> state(rule, {1});
  state.step({4}, 0.1);
  EXPECT_DOUBLE_EQ(state.slots[0][0], 4);
  EXPECT_DOUBLE_EQ(state.value[0], 1 - 0.2);
  state.step({2}, 0.1);
  EXPECT_DOUBLE_EQ(state.slots[0][0], 4);
  EXPECT_DOUBLE_EQ(state.slots[1][0], 0.2);
  EXPECT_DOUBLE_EQ(state.value[0], 0.8 - 0.2);
}

TEST(DenseUpdateRulesTest, CenteredRMSpropDividesByTheRootOfTheVariance) {
  const KerasRMSpropRule rule({.rho = 0.75, .epsilon = 0, .centered = true});
  State<double> state(rule, {1});
  state.step({4}, 0.1);
  EXPECT_DOUBLE_EQ(state.slots[1][0], 1);
  EXPECT_DOUBLE_EQ(state.value[0], 1 - 0.4 / std::sqrt(3));
}

TEST(DenseUpdateRulesTest, AVarianceThatRoundingMadeNegativeCountsAsNone) {
  const KerasRMSpropRule rule({.rho = 0.9, .epsilon = 1e-7, .centered = true});
  State<float> state(rule, {0});
  for (int i = 0; i < 500; ++i) state.step({12345.678F}, 1e-9);
  EXPECT_TRUE(std::isfinite(state.value[0]));
}

TEST(DenseUpdateRulesTest, AdadeltaNeedsNoRate) {
  const AdadeltaRule rule(0.75, 0.25);
  State<double> state(rule, {1});
  state.step({1}, 1);
  const double move = 0.5 / std::sqrt(0.5);
  EXPECT_DOUBLE_EQ(state.value[0], 1 - move);
  EXPECT_DOUBLE_EQ(state.slots[0][0], 0.25);
  EXPECT_DOUBLE_EQ(state.slots[1][0], 0.25 * move * move);
}

TEST(DenseUpdateRulesTest, AdamaxDividesByTheDecayedMaximum) {
  const AdamaxRule rule({.beta_1 = 0.5, .beta_2 = 0.25, .epsilon = 0});
  State<double> state(rule, {0});
  state.step({-8}, 0.1);
  EXPECT_DOUBLE_EQ(state.value[0], 0.1);
  state.step({1}, 0.1);
  EXPECT_DOUBLE_EQ(state.slots[1][0], 2);
  EXPECT_DOUBLE_EQ(state.value[0], 0.1 - 0.1 * (-1.5) / (0.75 * 2));
}

TEST(DenseUpdateRulesTest, NadamMultipliesItsFactors) {
  const MomentRuleOptions options = {};
  const NadamRule rule(options);
  std::vector<double> shared = {1};
  double expected = 1;
  for (int64_t i = 0; i < 3; ++i) {
    rule.step_shared(shared, {.iteration = i});
    expected *= 0.9 * (1 - 0.5 * std::pow(0.96, i + 1));
    EXPECT_DOUBLE_EQ(shared[0], expected);
  }
  EXPECT_EQ(rule.shared_slots().at(0).name, "u_product");
}

TEST(DenseUpdateRulesTest, LionUpdatesByTheSign) {
  const LionRule rule(0.9, 0.5);
  State<double> state(rule, {1, 1, 1});
  state.step({5, -0.25, 0}, 0.125);
  EXPECT_EQ(state.value, (std::vector<double>{0.875, 1.125, 1}));
  EXPECT_EQ(state.slots[0], (std::vector<double>{2.5, -0.125, 0}));
  state.step({std::nan(""), 0, 0}, 0.125);
  EXPECT_TRUE(std::isnan(state.value[0]));
  EXPECT_EQ(state.value[1], 1.25);
}

TEST(DenseUpdateRulesTest, LambUpdatesInProportionToTheNorm) {
  const LambRule rule({.epsilon = 0});
  State<double> state(rule, {3, -4});
  state.step({100, 0.001}, 0.1);
  // In the first step the direction is the sign of the gradient.
  EXPECT_NEAR(state.value[0], 3 - 0.1 * 5 / std::sqrt(2), 1e-9);
  EXPECT_NEAR(state.value[1], -4 - 0.1 * 5 / std::sqrt(2), 1e-9);
}

TEST(DenseUpdateRulesTest, LambUpdatesZeroWeightsByTheRate) {
  const LambRule rule({.epsilon = 0});
  State<double> state(rule, {0, 0});
  state.step({1, -1}, 0.1);
  EXPECT_NEAR(state.value[0], -0.1, 1e-12);
  EXPECT_EQ(LayerwiseRule::ratio(4, 0), 1);
  EXPECT_EQ(LayerwiseRule::ratio(36, 4), 3);
}

TEST(DenseUpdateRulesTest, ZeroGradientsOnZeroSlotsChangeNothing) {
  for (const double epsilon : {0.0, 1e-7}) {
    for (const auto& rule : all_rules(epsilon)) {
      State<float> state(*rule, {1, 0, -2});
      state.step({0, 0, 0}, 0.1);
      EXPECT_EQ(state.value, (std::vector<float>{1, 0, -2}));
    }
  }
}

TEST(DenseUpdateRulesTest, FloatAndDoubleAgree) {
  for (const auto& rule : all_rules()) {
    EXPECT_TRUE(rule->moves_without_gradient());
    State<float> single(*rule, {0.5F, -1, 2});
    State<double> twice(*rule, {0.5, -1, 2});
    for (int i = 0; i < 5; ++i) {
      const float g = static_cast<float>(std::cos(2.5 * i));
      single.step({g, g * g, -3}, 0.01);
      twice.step({g, static_cast<double>(g) * g, -3}, 0.01);
    }
    for (size_t i = 0; i < 3; ++i) EXPECT_NEAR(single.value[i], twice.value[i], 2e-6);
  }
}

}  // namespace keel::dense_update_rules_test
