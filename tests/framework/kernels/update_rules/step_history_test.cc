// Tests framework/kernels/update_rules/closed_form.cc and zero_gradient_update.cc.
#include <keel/framework/kernels/update_rules/step_history.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/base/errors.h>
#include <keel/framework/kernels/update_rules/dense_update_rules.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>

#include "tests/support/errors.h"

namespace keel::kernels::step_history_test {

using testing::HasSubstr;
using testing_support::message_if_any;

using Rule = std::shared_ptr<const UpdateRule>;

struct Named {
  const char* name;
  Rule rule;
  bool closed_form = true;
};

template <class T, class... Options>
Named named(const char* name, const Options&... options) {
  return {name, std::make_shared<T>(options...)};
}

std::vector<Named> all_rules() {
  std::vector<Named> out = {
      named<SGDRule>("sgd"),
      named<SGDRule>("momentum", 0.9),
      named<SGDRule>("nesterov", 0.99, true),
      named<AdagradRule>("adagrad", 0.1, 1e-7),
      named<AdamRule>("adam", AdamRuleOptions{}),
      named<AdamRule>("adam with a large epsilon", AdamRuleOptions{.epsilon = 0.1}),
      named<AdamRule>("adam without epsilon", AdamRuleOptions{.epsilon = 0}),
      // m / sqrt(v) grows from step to step.
      named<AdamRule>("adam of other moments", AdamRuleOptions{.beta_1 = 0.95, .beta_2 = 0.8}),
      named<AdamRule>("adam without correction", AdamRuleOptions{.bias_correction = false}),
      named<AdamRule>("amsgrad", AdamRuleOptions{.amsgrad = true}),
      named<KerasRMSpropRule>("rmsprop", KerasRMSpropRuleOptions{}),
      named<KerasRMSpropRule>("rmsprop with all",
                              KerasRMSpropRuleOptions{.momentum = 0.9, .centered = true}),
      named<AdadeltaRule>("adadelta", 0.95, 1e-7),
      named<AdamaxRule>("adamax", MomentRuleOptions{}),
      named<NadamRule>("nadam", MomentRuleOptions{}),
      named<LionRule>("lion", 0.9, 0.99),
      named<FtrlRule>("ftrl", FtrlRuleOptions{.l1 = 0.001, .l2 = 0.01}),
      named<FtrlRule>("ftrl that shrinks", FtrlRuleOptions{.l2_shrinkage = 0.01}),
      named<MomentumRule>("momentum outside", 0.9, true),
      named<RMSPropRule>("mean squares", 0.9, 0.9, 1e-7),
      named<ProximalYogiRule>("yogi", ProximalYogiRuleOptions{.l1 = 0.01}),
      named<AdagradMomentumRule>("adagrad momentum", AdagradMomentumRuleOptions{.momentum = 0.5}),
      named<AdamRule>("adam with the sum inside", AdamRuleOptions{.sum_inside_sqrt = true}),
      named<EngineRule>("engine", std::make_shared<AdamRule>(AdamRuleOptions{}),
                        std::vector<std::string>{"momenta", "velocities"}),
  };
  for (Named& n : out) {
    for (const char* without :
         {"ftrl that shrinks", "yogi", "adagrad momentum", "adam with the sum inside"}) {
      if (std::strcmp(n.name, without) == 0) n.closed_form = false;
    }
  }
  return out;
}

// A row and its slots, updated by a rule.
template <class T>
struct Row {
  Row(const UpdateRule& rule, int64_t dim) : value(dim) {
    std::mt19937 random(5);
    std::normal_distribution<double> normal;
    for (T& x : value) x = static_cast<T>(0.05 * normal(random));
    for (const Slot& slot : rule.slots()) slots.emplace_back(dim, static_cast<T>(slot.initial));
  }

  std::vector<T*> pointers() {
    std::vector<T*> out;
    for (auto& slot : slots) out.push_back(slot.data());
    return out;
  }

  void step(const UpdateRule& rule, const std::vector<T>& gradient, const Step& step,
            double decay) {
    if (decay != 0) {
      for (T& x : value) x -= static_cast<T>(decay) * x;
    }
    rule.update(value.data(), gradient.data(), pointers().data(), std::ssize(value), step);
  }

  std::vector<T> value;
  std::vector<std::vector<T>> slots;
};

struct RunOptions {
  bool closed_form = false;
  double weight_decay = 0;
  int64_t steps = 200;
  int64_t dim = 5;
  // Steps with a gradient, in addition to the first ten and the last one.
  std::vector<int64_t> with_gradient = {11, 12, 40, 41, 46, 120, 190};
};

// Calls look(lazy, dense) after each step with a gradient. The dense row has made all steps; the
// lazy row has caught up with the steps without gradient.
template <class T, class Look>
void run(const UpdateRule& rule, const Rule& shared_rule, const RunOptions& o, const Look& look) {
  StepHistory skipped("Test", shared_rule, {.closed_form = o.closed_form});
  const bool decays = o.weight_decay != 0;
  skipped.expect<T>(decays);
  Row<T> dense(rule, o.dim), lazy(rule, o.dim);
  std::vector<double> shared;
  for (const Slot& slot : rule.shared_slots()) shared.push_back(slot.initial);
  std::mt19937 random(7);
  std::normal_distribution<double> normal;
  std::vector<T> gradient(o.dim);
  int64_t had = 0;
  for (int64_t i = 0; i < o.steps; ++i) {
    const bool named = i < 10 || i == o.steps - 1 || std::ranges::count(o.with_gradient, i) > 0;
    Step step = {.learning_rate = 0.01 / (1 + 0.001 * static_cast<double>(i)) +
                                  1e-4 * static_cast<double>(i % 7),
                 .iteration = i};
    rule.step_shared(shared, step);
    step.shared = shared;
    const double decay = o.weight_decay * step.learning_rate;
    for (T& x : gradient) x = named ? static_cast<T>(0.1 * normal(random)) : T{0};
    dense.step(rule, gradient, step, decay);
    if (named) {
      skipped.catch_up(lazy.value.data(), lazy.pointers().data(), o.dim, had, i, decays);
      lazy.step(rule, gradient, step, decay);
      had = i + 1;
    }
    skipped.add(step, decay);
    if (named) look(lazy, dense);
  }
}

template <class T>
void expect_bits(const Named& n, const RunOptions& o) {
  run<T>(*n.rule, n.rule, o, [&](const Row<T>& lazy, const Row<T>& dense) {
    const size_t bytes = dense.value.size() * sizeof(T);
    ASSERT_EQ(std::memcmp(lazy.value.data(), dense.value.data(), bytes), 0) << n.name;
    for (size_t s = 0; s < dense.slots.size(); ++s) {
      ASSERT_EQ(std::memcmp(lazy.slots[s].data(), dense.slots[s].data(), bytes), 0)
          << n.name << ", slot " << s;
    }
  });
}

TEST(StepHistoryTest, ReplayGivesTheBitsOfStepsOfZeroGradient) {
  for (const Named& n : all_rules()) {
    for (const double decay : {0.0, 0.1}) {
      expect_bits<float>(n, {.weight_decay = decay});
      expect_bits<double>(n, {.weight_decay = decay});
      expect_bits<float>(n, {.weight_decay = decay, .steps = 40, .dim = 300});
    }
  }
}

TEST(StepHistoryTest, ReplayGivesTheBitsOfSettledWeights) {
  for (const Named& n : all_rules()) {
    const RunOptions o = {.weight_decay = 0.01, .steps = 3000, .with_gradient = {2500, 2700}};
    expect_bits<float>(n, o);
  }
}

// Returns the largest difference relative to the largest element of b.
template <class T>
double distance(const std::vector<T>& a, const std::vector<T>& b) {
  double most = 0, off = 0;
  for (size_t i = 0; i < b.size(); ++i) {
    most = std::max(most, std::abs(static_cast<double>(b[i])));
    off = std::max(off, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])));
  }
  return most == 0 ? off : off / most;
}

void expect_closed_form_near(const Named& n, double decay) {
  const RunOptions o = {.closed_form = true,
                        .weight_decay = decay,
                        .steps = 10000,
                        .with_gradient = {50, 51, 180, 700, 2000, 5000, 5003}};
  run<double>(*n.rule, n.rule, o, [&](const Row<double>& lazy, const Row<double>& dense) {
    ASSERT_LT(distance(lazy.value, dense.value), 1e-8) << n.name;
    for (size_t s = 0; s < dense.slots.size(); ++s) {
      ASSERT_LT(distance(lazy.slots[s], dense.slots[s]), 1e-8) << n.name << ", slot " << s;
    }
  });
}

TEST(StepHistoryTest, TheClosedFormIsWithinAMillionthAfterTenThousandSteps) {
  for (const Named& n : all_rules()) {
    if (n.closed_form) expect_closed_form_near(n, 0);
  }
}

TEST(StepHistoryTest, TheClosedFormIsWithinAMillionthOfStepsThatDecay) {
  for (const Named& n : all_rules()) {
    if (n.closed_form) expect_closed_form_near(n, 0.004);
  }
}

void expect_nearer_than_steps(const Named& n) {
  const RunOptions o = {.closed_form = true,
                        .weight_decay = 0.004,
                        .steps = 10000,
                        .with_gradient = {50, 51, 180, 700, 2000, 5000}};
  std::vector<std::vector<double>> exact;
  run<double>(*n.rule, n.rule, o,
              [&](const Row<double>&, const Row<double>& dense) { exact.push_back(dense.value); });
  size_t i = 0;
  double of_formulas = 0, of_steps = 0;
  run<float>(*n.rule, n.rule, o, [&](const Row<float>& lazy, const Row<float>& dense) {
    const auto off = [&](const std::vector<float>& x) {
      return distance(std::vector<double>(x.begin(), x.end()), exact[i]);
    };
    of_formulas = std::max(of_formulas, off(lazy.value));
    of_steps = std::max(of_steps, off(dense.value));
    ++i;
  });
  EXPECT_LE(of_formulas, of_steps + 1e-6) << n.name;
}

// Single steps in float32 round in each step; the formulas round once.
TEST(StepHistoryTest, TheClosedFormIsMoreAccurateThanFloatSteps) {
  const std::vector<Named> all = all_rules();
  for (size_t i = 0; i < all.size() / 2; ++i) {
    if (all[i].closed_form) expect_nearer_than_steps(all[i]);
  }
}

TEST(StepHistoryTest, TheClosedFormIsMoreAccurateForOtherRules) {
  const std::vector<Named> all = all_rules();
  for (size_t i = all.size() / 2; i < all.size(); ++i) {
    if (all[i].closed_form) expect_nearer_than_steps(all[i]);
  }
}

TEST(StepHistoryTest, TheClosedFormEndsAtAnyStep) {
  for (const Named& n : all_rules()) {
    if (!n.closed_form) continue;
    for (const bool decays : {false, true}) {
      StepHistory skipped("Test", n.rule, {.closed_form = true});
      skipped.expect<double>(decays);
      Row<double> start(*n.rule, 3);
      for (auto& slot : start.slots) std::ranges::fill(slot, 0.25);
      Row<double> dense = start, lazy = start;
      std::vector<double> shared;
      for (const Slot& slot : n.rule->shared_slots()) shared.push_back(slot.initial);
      for (int64_t i = 0; i < 300; ++i) {
        Step step = {.learning_rate = 0.01, .iteration = i};
        n.rule->step_shared(shared, step);
        step.shared = shared;
        const double decay = decays ? 1e-4 : 0;
        skipped.add(step, decay);
        if (i >= 20 && i < 170) dense.step(*n.rule, {0, 0, 0}, step, decay);
      }
      skipped.catch_up(lazy.value.data(), lazy.pointers().data(), 3, 20, 170, decays);
      EXPECT_LT(distance(lazy.value, dense.value), 1e-8) << n.name;
    }
  }
}

TEST(StepHistoryTest, NonFiniteValuesRemain) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Rule rule = std::make_shared<AdamRule>(AdamRuleOptions{});
  for (const bool closed_form : {false, true}) {
    StepHistory skipped("Test", rule, {.closed_form = closed_form});
    skipped.expect<float>(false);
    for (int64_t i = 0; i < 100; ++i) skipped.add({.learning_rate = 0.1, .iteration = i}, 0);
    float w[2] = {1, 1}, m[2] = {nan, 0.5F}, v[2] = {1, 1};
    float* const slots[] = {m, v};
    skipped.catch_up(w, slots, 2, 0, 100, false);
    EXPECT_TRUE(std::isnan(w[0]));
    EXPECT_TRUE(std::isnan(m[0]));
    EXPECT_LT(w[1], 1);
  }
  // A NaN learning rate makes every row NaN. A decay of more than 1 has no logarithm.
  for (const bool closed_form : {false, true}) {
    StepHistory skipped("Test", rule, {.closed_form = closed_form});
    skipped.expect<float>(true);
    for (int64_t i = 0; i < 9; ++i) skipped.add({.learning_rate = 0.1, .iteration = i}, 1.5);
    float w = 2, m = 0, v = 0;
    float* const slots[] = {&m, &v};
    skipped.catch_up(&w, slots, 1, 0, 9, true);
    EXPECT_FLOAT_EQ(w, -2 / 512.0F);
    skipped.add({.learning_rate = nan, .iteration = 9}, 0);
    skipped.catch_up(&w, slots, 1, 9, 10, true);
    EXPECT_TRUE(std::isnan(w));
  }
}

std::string refusal(const Rule& rule, bool closed_form) {
  return message_if_any<ValueError>(
      [&] { const StepHistory made("Test", rule, {.closed_form = closed_form}); });
}

TEST(StepHistoryTest, RejectsUnsupportedRules) {
  const Rule lamb = std::make_shared<LambRule>(MomentRuleOptions{});
  EXPECT_THAT(refusal(lamb, false), HasSubstr("Test: lazy_rows requires"));
  const Rule custom = std::make_shared<CustomRule>(CustomComputation(), std::vector<std::string>{});
  EXPECT_THAT(refusal(custom, false), HasSubstr("custom computation"));
  const Rule endless = std::make_shared<SGDRule>(1.0);
  EXPECT_EQ(refusal(endless, false), "");
  EXPECT_THAT(refusal(endless, true), HasSubstr("closed_form"));
  for (const Named& n : all_rules()) {
    EXPECT_EQ(refusal(n.rule, false), "") << n.name;
    EXPECT_EQ(refusal(n.rule, true).empty(), n.closed_form) << n.name;
  }
}

}  // namespace keel::kernels::step_history_test
