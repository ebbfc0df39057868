#include <keel/framework/kernels/update_rules/basic_update_rules.h>

#include <cmath>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/expectations.h"

namespace keel::basic_update_rules_test {

using testing_support::expect_near;
using testing_support::Tolerance;

constexpr Tolerance tolerance(double size) { return {.absolute = size, .relative = size}; }

// Four weights and five gradients for each. The tests below contain Keras 3's results.
const std::vector<float> kStart = {0.44161215F, -1.3445414F, 1.1079614F, 0.41317615F};
const std::vector<std::vector<float>> kGradients = {
    {0.7648206F, -1.134243F, -0.11082502F, -1.7745333F},
    {0.07983765F, -0.72898275F, 0.07738202F, 0.21381181F},
    {-0.05565045F, 0.22385624F, 0.57532704F, 0.4969583F},
    {1.0190599F, -0.8384779F, 0.40527752F, -1.2591575F},
    {-0.54258543F, -0.2823639F, -0.2203112F, -0.16157871F}};

template <class T>
struct State {
  std::vector<T> value;
  std::vector<std::vector<T>> slots;
};

template <class T>
State<T> fresh(const UpdateRule& rule, const std::vector<T>& value) {
  State<T> state{value, {}};
  for (const Slot& slot : rule.slots()) {
    state.slots.emplace_back(value.size(), static_cast<T>(slot.initial));
  }
  return state;
}

template <class T>
void apply(const UpdateRule& rule, State<T>& state, const std::vector<T>& gradient,
           const Step& step) {
  std::vector<T*> slots;
  for (auto& slot : state.slots) slots.push_back(slot.data());
  rule.update(state.value.data(), gradient.data(), slots.data(), std::ssize(gradient), step);
}

template <class T>
State<T> run(const UpdateRule& rule, const std::vector<T>& start,
             const std::vector<std::vector<T>>& gradients, double learning_rate) {
  State<T> state = fresh(rule, start);
  for (int64_t i = 0; i < std::ssize(gradients); ++i) {
    apply(rule, state, gradients[i], {.learning_rate = learning_rate, .iteration = i});
  }
  return state;
}

void expect_keras(const UpdateRule& rule, double learning_rate, const std::vector<double>& first,
                  const std::vector<double>& fifth) {
  expect_near(run<float>(rule, kStart, {kGradients[0]}, learning_rate).value, first,
              tolerance(2e-6));
  expect_near(run<float>(rule, kStart, kGradients, learning_rate).value, fifth, tolerance(2e-6));
}

TEST(UpdateRuleTest, SgdMatchesKeras) {
  expect_keras(SGDRule(), 0.01, {0.43396395, -1.333199, 1.1090697, 0.4309215},
               {0.4289573, -1.3169392, 1.100693, 0.43802115});
}

TEST(UpdateRuleTest, SgdWithMomentumMatchesKeras) {
  const SGDRule rule(0.9);
  expect_keras(rule, 0.01, {0.43396395, -1.333199, 1.1090697, 0.4309215},
               {0.39511824, -1.2603352, 1.0887501, 0.4905643});
  const State<float> state = run<float>(rule, kStart, kGradients, 0.01);
  EXPECT_NEAR(state.slots[0][0], -0.0088949185, 1e-8);
  EXPECT_NEAR(state.slots[0][1], 0.021312756, 1e-8);
}

TEST(UpdateRuleTest, SgdWithNesterovMomentumMatchesKeras) {
  expect_keras(SGDRule(0.9, true), 0.01, {0.42708057, -1.3229909, 1.1100671, 0.4468923},
               {0.3871128, -1.2411536, 1.0834029, 0.50767046});
}

TEST(UpdateRuleTest, AdagradMatchesKeras) {
  expect_keras(AdagradRule(0.1, 1e-7), 0.1, {0.34919983, -1.2482151, 1.1410351, 0.5116252},
               {0.3069705, -1.1432056, 1.0080347, 0.5361653});
  const State<float> state = run<float>(AdagradRule(0.1, 1e-7), kStart, kGradients, 0.1);
  EXPECT_NEAR(state.slots[0][0], 2.0273037, 1e-6);
  expect_keras(AdagradRule(0.5, 1e-6), 0.1, {0.3681854, -1.2596813, 1.1234454, 0.5060726},
               {0.3309115, -1.1625935, 1.0313882, 0.5303332});
}

TEST(UpdateRuleTest, AdamMatchesKeras) {
  const AdamRule rule({});
  expect_keras(rule, 0.01, {0.43161225, -1.3345416, 1.117961, 0.42317605},
               {0.4081644, -1.3039582, 1.1015232, 0.44114795});
  const State<float> state = run<float>(rule, kStart, kGradients, 0.01);
  EXPECT_NEAR(state.slots[0][0], 0.08894918, 1e-7);
  EXPECT_NEAR(state.slots[1][0], 0.0019239036, 1e-8);
  expect_keras(AdamRule({.beta_1 = 0.8, .beta_2 = 0.99, .epsilon = 1e-4}), 0.01,
               {0.43162522, -1.3345503, 1.117872, 0.4231705},
               {0.4096313, -1.3053823, 1.099567, 0.43958429});
}

TEST(UpdateRuleTest, FtrlMatchesKeras) {
  const FtrlRule rule({.l1 = 0.01, .l2 = 0.02});
  expect_keras(rule, 0.1, {0.17839189, -0.88327736, 0.091351524, 0.43761182},
               {0.13630438, -0.7785402, -0.037784364, 0.4621233});
  const State<float> state = run<float>(rule, kStart, kGradients, 0.1);
  EXPECT_NEAR(state.slots[0][1], 2.7508092, 1e-5);
  EXPECT_NEAR(state.slots[1][1], 12.9536705, 5e-5);
}

TEST(UpdateRuleTest, FtrlWithPowerAndShrinkageMatchesKeras) {
  const FtrlRule rule({.learning_rate_power = -0.6,
                       .initial_accumulator_value = 0.2,
                       .l1 = 0.005,
                       .beta = 0.1,
                       .l2_shrinkage = 0.03});
  const State<float> state = run<float>(rule, kStart, kGradients, 0.1);
  expect_near(state.value, {0.10027774, -0.68434876, -0.06803008, 0.4173045}, tolerance(2e-6));
  expect_near(state.slots[0], {2.1273036, 2.850809, 0.76205826, state.slots[0][3]},
              tolerance(2e-6));
  expect_near(state.slots[1], {-1.6825339, 13.520287, 0.65098494, state.slots[1][3]},
              tolerance(2e-6));
}

TEST(UpdateRuleTest, AmsgradDividesByTheLargestVelocity) {
  const AdamRule rule({.beta_1 = 0, .beta_2 = 0, .epsilon = 0, .amsgrad = true});
  State<double> state = fresh<double>(rule, {0.0});
  const double lr = 0.5;
  apply(rule, state, {4.0}, {.learning_rate = lr, .iteration = 0});
  EXPECT_DOUBLE_EQ(state.value[0], -lr);
  apply(rule, state, {1.0}, {.learning_rate = lr, .iteration = 1});
  EXPECT_DOUBLE_EQ(state.value[0], -lr - lr / 4);
  EXPECT_EQ(state.slots[1][0], 1);
  EXPECT_EQ(state.slots[2][0], 16);
  EXPECT_EQ(rule.slots().at(2).name, "velocity_hat");
}

const std::vector<float> kRow = {1.0F, -0.5F};
const std::vector<float> kFirst = {0.4F, -0.2F};
const std::vector<float> kSecond = {0.2F, 0.6F};

TEST(UpdateRuleTest, AdagradOfAnEngineHasNoEpsilon) {
  const State<float> state = run<float>(AdagradRule(0.1, 0), kRow, {kFirst, kSecond}, 0.1);
  expect_near(state.value, {0.8850387, -0.5314006}, tolerance(1e-6));
  expect_near(state.slots[0], {0.3, 0.5}, tolerance(1e-6));
  expect_near(run<float>(AdagradRule(0.1, 0), kRow, {kFirst}, 0.1).value,
              {1 - 0.04 / std::sqrt(0.26), -0.5 + 0.02 / std::sqrt(0.14)}, tolerance(1e-6));
}

TEST(UpdateRuleTest, AdagradIgnoresZeroGradientsOnZeroAccumulators) {
  const AdagradRule rule(0, 0);
  EXPECT_FALSE(rule.moves_without_gradient());
  EXPECT_EQ(run<float>(rule, kRow, {{0, 0}}, 0.1).value, kRow);
  EXPECT_EQ(run<double>(rule, {3.0}, {{0.0}}, 0.1).value[0], 3.0);
  // The first step on a zero accumulator has length learning_rate, even for a tiny gradient.
  expect_near(run<float>(rule, {0.0F}, {{1e-15F}}, 0.1).value, {-0.1}, tolerance(1e-6));
}

TEST(UpdateRuleTest, AdamOfAnEngineHasNoBiasCorrection) {
  const AdamRule rule({.bias_correction = false, .sum_inside_sqrt = true});
  const State<float> first = run<float>(rule, kRow, {kFirst}, 0.1);
  expect_near(first.value, {1 - 0.1 * 0.04 / std::sqrt(0.00016 + 1e-14), -0.1837722},
              tolerance(1e-5));
  const State<float> second = run<float>(rule, kRow, {kFirst, kSecond}, 0.1);
  expect_near(second.value, {0.2876339, -0.3937827}, tolerance(1e-5));
  expect_near(second.slots[0], {0.056, 0.042}, tolerance(1e-6));
  EXPECT_NEAR(second.slots[1][0], 0.0001998, 1e-7);
  // A row with an explicit zero gradient still moves by its momentum.
  expect_near(run<float>(rule, kRow, {kFirst, {0, 0}}, 0.1).value, {0.3990248, 0.1009752},
              tolerance(1e-5));
}

TEST(UpdateRuleTest, AdamAddsEpsilonInsideOrOutsideTheRoot) {
  expect_near(
      run<float>(AdamRule({.epsilon = 0.05, .bias_correction = false, .sum_inside_sqrt = true}),
                 kRow, {kFirst}, 0.1)
          .value,
      {0.9224433, -0.4603162}, tolerance(1e-6));
  expect_near(
      run<float>(AdamRule({.epsilon = 0.05, .bias_correction = false}), kRow, {kFirst}, 0.1).value,
      {0.9361523, -0.4644915}, tolerance(1e-6));
}

TEST(UpdateRuleTest, FtrlFollowsItsFormula) {
  const State<float> first = run<float>(FtrlRule({}), kRow, {kFirst}, 0.1);
  expect_near(first.value, {0.3013799, -0.0239706}, tolerance(1e-5));
  expect_near(first.slots[0], {0.26, 0.14}, tolerance(1e-6));
  expect_near(first.slots[1], {-1.5367419, 0.0896899}, tolerance(1e-5));
  const State<float> second = run<float>(FtrlRule({}), kRow, {kFirst, kSecond}, 0.1);
  expect_near(second.value, {0.264865, -0.1088234}, tolerance(1e-5));
  expect_near(second.slots[1], {-1.4507255, 0.7694979}, tolerance(1e-5));
}

TEST(UpdateRuleTest, FtrlShrinksSmallWeightsToZero) {
  EXPECT_EQ(run<float>(FtrlRule({.l1 = 2.0}), kRow, {kFirst}, 0.1).value, (std::vector<float>(2)));
  expect_near(run<float>(FtrlRule({.l1 = 0.5, .l2 = 0.3, .beta = 0.2}), kRow, {kFirst}, 0.1).value,
              {0.1346589, 0}, tolerance(1e-5));
}

TEST(UpdateRuleTest, FtrlOverwritesAFreshRowOfZeroGradientWithZero) {
  EXPECT_EQ(run<float>(FtrlRule({}), kRow, {{0, 0}}, 0.1).value, (std::vector<float>(2)));
  const FtrlRule from_zero({.initial_accumulator_value = 0});
  EXPECT_EQ(run<float>(from_zero, kRow, {{0, 0}}, 0.1).value, (std::vector<float>(2)));
  const FtrlRule other_power({.learning_rate_power = -0.7, .initial_accumulator_value = 0});
  EXPECT_EQ(run<double>(other_power, {1, -0.5}, {{0, 0}}, 0.1).value, (std::vector<double>(2)));
}

TEST(UpdateRuleTest, FtrlWithPowerZeroHasAFixedRate) {
  const State<float> state = run<float>(FtrlRule({.learning_rate_power = 0}), kRow, {kFirst}, 0.1);
  expect_near(state.value, {-0.04, 0.02}, tolerance(1e-6));
  expect_near(state.slots[1], {0.4, -0.2}, tolerance(1e-6));
}

TEST(UpdateRuleTest, FtrlScalesTheLinearSlotByTheRateOnRequest) {
  FtrlRuleOptions options = {.l1 = 0.05, .l2 = 0.3, .beta = 0.2};
  const State<float> plain = run<float>(FtrlRule(options), kRow, {kFirst, kSecond}, 0.1);
  expect_near(plain.value, {0.168347, -0.0682993}, tolerance(1e-5));
  expect_near(plain.slots[1], {-1.4097764, 0.7105273}, tolerance(1e-5));
  options.multiply_linear_by_learning_rate = true;
  const State<float> scaled = run<float>(FtrlRule(options), kRow, {kFirst, kSecond}, 0.1);
  expect_near(scaled.value, {0.168347, -0.0682993}, tolerance(1e-5));
  expect_near(scaled.slots[1], {-0.1409776, 0.0710527}, tolerance(1e-5));
  for (const float w : run<float>(FtrlRule(options), kRow, {kFirst}, 0).value) {
    EXPECT_TRUE(std::isfinite(w));
  }
}

TEST(UpdateRuleTest, SlotsHaveNamesAndInitialValues) {
  EXPECT_TRUE(SGDRule().slots().empty());
  EXPECT_FALSE(SGDRule().moves_without_gradient());
  EXPECT_EQ(SGDRule(0.9).slots().at(0).name, "momentum");
  EXPECT_TRUE(SGDRule(0.9).moves_without_gradient());
  const auto adagrad = AdagradRule(0.25, 0).slots();
  EXPECT_EQ(adagrad.at(0).name, "accumulator");
  EXPECT_EQ(adagrad.at(0).initial, 0.25);
  const auto adam = AdamRule({}).slots();
  EXPECT_EQ(adam.at(0).name, "momentum");
  EXPECT_EQ(adam.at(1).name, "velocity");
  const auto ftrl = FtrlRule({.initial_accumulator_value = 0.5}).slots();
  EXPECT_EQ(ftrl.at(0).name, "accumulator");
  EXPECT_EQ(ftrl.at(0).initial, 0.5);
  EXPECT_EQ(ftrl.at(1).name, "linear");
}

// Covers vector loops and their tails: an element alone gets the same bits as among others.
TEST(UpdateRuleTest, BitsOfAnElementDoNotDependOnOtherElements) {
  const SGDRule sgd;
  const SGDRule nesterov(0.9, true);
  const AdagradRule adagrad(0.1, 1e-7);
  const AdamRule adam({});
  const FtrlRule ftrl({.l1 = 0.01, .l2 = 0.02});
  const FtrlRule other_power({.learning_rate_power = -0.3});
  std::vector<float> start;
  std::vector<float> gradient;
  for (int i = 0; i < 37; ++i) {
    start.push_back(std::sin(1.0F + i));
    gradient.push_back(std::cos(3.0F * i));
  }
  for (const UpdateRule* rule :
       std::vector<const UpdateRule*>{&sgd, &nesterov, &adagrad, &adam, &ftrl, &other_power}) {
    const std::vector<float> whole = run<float>(*rule, start, {gradient, gradient}, 0.05).value;
    for (int i = 0; i < 37; ++i) {
      const std::vector<float> g = {gradient[i]};
      EXPECT_EQ(run<float>(*rule, {start[i]}, {g, g}, 0.05).value[0], whole[i]) << i;
    }
  }
}

TEST(UpdateRuleTest, DoublesAreUpdatedInDouble) {
  expect_near(run<double>(AdagradRule(0.1, 0), {1.0}, {{0.4}}, 0.1).value,
              {1 - 0.1 * 0.4 / std::sqrt(0.1 + 0.4 * 0.4)}, tolerance(1e-15));
  expect_near(run<double>(AdamRule({.bias_correction = false}), {1.0}, {{0.4}}, 0.1).value,
              {1 - 0.1 * (0.1 * 0.4) / (std::sqrt(0.001 * 0.16) + 1e-7)}, tolerance(1e-14));
  expect_near(run<double>(SGDRule(0.5), {1.0}, {{0.4}, {0.4}}, 0.1).value, {1 - 0.04 - 0.06},
              tolerance(1e-15));
}

}  // namespace keel::basic_update_rules_test
