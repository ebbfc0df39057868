// Tests framework/whole_variable_rule.h.
#include <keel/framework/kernels/update_rules/whole_variable_rules.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/errors.h"

namespace keel::whole_variable_rules_test {

using testing::HasSubstr;
using testing_support::message_of;

// A variable with its slots, updated as a whole.
struct State {
  State(const WholeVariableRule& rule_, VariableInfo info_, std::vector<double> start)
      : rule(rule_), info(std::move(info_)), value(std::move(start)) {
    for (size_t s = 0; s < rule.slots().size(); ++s) {
      const auto shape = rule.slot_shape(s, info);
      slots.emplace_back(shape ? shape->size() : 0);
    }
  }
  void step(std::vector<double> gradient, double learning_rate) {
    std::vector<double*> pointers;
    for (auto& slot : slots) pointers.push_back(slot.data());
    rule.update_variable(value.data(), gradient.data(), pointers.data(), info,
                         {.learning_rate = learning_rate, .iteration = iteration++});
  }

  const WholeVariableRule& rule;
  const VariableInfo info;
  std::vector<double> value;
  std::vector<std::vector<double>> slots;
  int64_t iteration = 0;
};

TEST(AdafactorRuleTest, TheFirstStepOfAVectorIsARootMeanSquareOfRho) {
  const AdafactorRule rule({});
  State state(rule, {.shape = {2}}, {3, 4});
  // The decay of the first step is 0, so v is g^2 and u has elements 1 and -1.
  state.step({5, -0.1}, 0.01);
  const double alpha = std::sqrt(12.5) * 0.01;
  EXPECT_NEAR(state.value[0], 3 - alpha, 1e-12);
  EXPECT_NEAR(state.value[1], 4 + alpha, 1e-12);
  EXPECT_EQ(state.slots[0].size(), 1U);  // placeholders
  EXPECT_NEAR(state.slots[2][0], 25, 1e-12);
}

TEST(AdafactorRuleTest, MatricesKeepAveragesOfRowsAndColumns) {
  const AdafactorRule rule({.epsilon_1 = 0});
  State state(rule, {.shape = {2, 3}}, {1, 1, 1, 1, 1, 1});
  state.step({1, 2, 3, 2, 4, 6}, 0.1);
  EXPECT_EQ(state.slots[0], (std::vector<double>{14. / 3, 56. / 3}));
  EXPECT_EQ(state.slots[1], (std::vector<double>{2.5, 10, 22.5}));
  // The squares are a product of a row and a column, so v is exact and all directions are 1.
  for (size_t i = 0; i < 6; ++i) EXPECT_NEAR(state.value[i], 0.9, 1e-12) << i;
  EXPECT_NEAR(state.slots[2][5], 36, 1e-12);
}

TEST(AdafactorRuleTest, LongDirectionsAreClipped) {
  const AdafactorRule rule({.clip_threshold = 0.25});
  State state(rule, {.shape = {1}}, {1});
  state.step({7}, 0.1);
  EXPECT_NEAR(state.value[0], 1 - 0.1 * 0.25, 1e-12);
}

TEST(AdafactorRuleTest, ZeroGradientsGiveNoNaN) {
  const AdafactorRule rule({.epsilon_1 = 0});
  State state(rule, {.shape = {2, 2}}, {1, 2, 3, 4});
  state.step({0, 0, 0, 0}, 0.1);
  EXPECT_EQ(state.value, (std::vector<double>{1, 2, 3, 4}));
}

// Returns the product of a [2, 2] matrix with its transpose.
std::vector<double> gram_of(const std::vector<double>& x) {
  return {x[0] * x[0] + x[1] * x[1], x[0] * x[2] + x[1] * x[3], x[2] * x[2] + x[3] * x[3]};
}

TEST(MuonRuleTest, StepsOfMatricesAreNearlyOrthogonal) {
  const MuonRule rule({.ns_steps = 10, .nesterov = false, .rms_rate = {}});
  State state(rule, {.shape = {2, 2}, .path = "dense/kernel"}, {0, 0, 0, 0});
  state.step({3, 1, -2, 4}, 1);
  const std::vector<double> gram = gram_of(state.value);
  // The polynomial keeps singular values between 0.68 and 1.2.
  EXPECT_NEAR(gram[0], 1, 0.5);
  EXPECT_NEAR(gram[1], 0, 0.5);
  EXPECT_NEAR(gram[2], 1, 0.5);
  EXPECT_EQ(state.slots[0], (std::vector<double>{3, 1, -2, 4}));
  EXPECT_TRUE(state.slots[1].empty());
}

TEST(MuonRuleTest, ACubicPolynomialConvergesToTheOrthogonalMatrix) {
  // x = 1.5 x - 0.5 x x^T x is Newton's iteration for the polar factor.
  const MuonRule rule({.muon_a = 1.5, .muon_b = -0.5, .muon_c = 0, .ns_steps = 40, .rms_rate = {}});
  for (const Shape& shape : {Shape({2, 3}), Shape({3, 2})}) {
    State state(rule, {.shape = shape, .path = "kernel"}, std::vector<double>(6));
    // The singular values of both matrices are 1 and 2.
    state.step(shape[0] == 2 ? std::vector<double>{1, 0, 0, 0, 2, 0}
                             : std::vector<double>{1, 0, 0, 2, 0, 0},
               1);
    double squares = 0;
    for (const double x : state.value) squares += x * x;
    EXPECT_NEAR(squares, 2, 1e-6) << shape;
  }
}

TEST(MuonRuleTest, OtherVariablesTakeAdamsStep) {
  const MuonRule rule({.exclude_layers = {"out.*kernel"}, .adam_lr_ratio = 0.5});
  for (const VariableInfo& info : {VariableInfo{.shape = {4}, .path = "bias"},
                                   VariableInfo{.shape = {2, 2}, .path = "item_Embedding/table"},
                                   VariableInfo{.shape = {2, 2}, .path = "output/kernel"},
                                   VariableInfo{.shape = {1, 2, 2}, .path = "cube"}}) {
    EXPECT_TRUE(rule.takes_adam_step(info)) << info.path;
    EXPECT_EQ(rule.weight_decay(info, 0.5), 0.004);
    State state(rule, info, {1, 1, 1, 1});
    state.step({3, -3, 1, -1}, 0.1);
    EXPECT_NEAR(state.value[0], 1 - 0.05, 1e-6);
    EXPECT_NEAR(state.value[1], 1 + 0.05, 1e-6);
    EXPECT_EQ(state.slots[1].size(), 4U);
  }
  const VariableInfo matrix = {.shape = {2, 2}, .path = "dense/kernel"};
  EXPECT_FALSE(rule.takes_adam_step(matrix));
  EXPECT_EQ(rule.weight_decay(matrix, 0.5), 0.5);
  const MuonRule with_embeddings({.exclude_embeddings = false});
  EXPECT_FALSE(with_embeddings.takes_adam_step({.shape = {2, 2}, .path = "embedding/table"}));
}

TEST(MuonRuleTest, InvalidPatternsAreRejected) {
  EXPECT_THAT(message_of<ValueError>([] { MuonRule({.exclude_layers = {"("}}); }),
              HasSubstr("exclude_layers: '('"));
}

TEST(WholeVariableRuleTest, RunsOfElementsAreRejected) {
  const AdafactorRule rule({});
  float x = 0;
  EXPECT_THROW(rule.update(&x, &x, nullptr, 1, {}), RuntimeError);
}

TEST(ScheduleFreeAdamWRuleTest, TheFirstStepMovesToTheNewIterate) {
  const ScheduleFreeAdamWRule rule({.beta_1 = 0.9, .beta_2 = 0.5, .epsilon = 0});
  double w = 2, z = 2, v = 0;
  const double g = 4;
  double* slots[] = {&z, &v};
  rule.update(&w, &g, slots, 1, {.learning_rate = 0.1});
  EXPECT_NEAR(v, 8, 1e-12);
  EXPECT_NEAR(z, 1.9, 1e-12);
  EXPECT_NEAR(w, 1.9, 1e-12);  // the average of the first step is z itself
  rule.update(&w, &g, slots, 1, {.learning_rate = 0.1, .iteration = 1});
  EXPECT_NEAR(z, 1.8, 1e-12);
  EXPECT_NEAR(w, 0.1 * 1.8 + 0.9 * 1.85, 1e-12);
}

TEST(ScheduleFreeAdamWRuleTest, WarmupScalesTheFirstSteps) {
  const ScheduleFreeAdamWRule rule({.beta_2 = 0, .epsilon = 0, .warmup_steps = 4});
  double w = 1, z = 1, v = 0;
  const double g = 1;
  double* slots[] = {&z, &v};
  rule.update(&w, &g, slots, 1, {.learning_rate = 0.4});
  EXPECT_NEAR(z, 0.9, 1e-12);
  rule.update(&w, &g, slots, 1, {.learning_rate = 0.4, .iteration = 3});
  EXPECT_NEAR(z, 0.5, 1e-12);
}

}  // namespace keel::whole_variable_rules_test
