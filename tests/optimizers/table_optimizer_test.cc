#include "optimizers/table_optimizer.h"

#include <cmath>

#include "gtest/gtest.h"

#include "optimizers/adagrad.h"
#include "optimizers/adam.h"
#include "optimizers/ftrl.h"
#include "optimizers/schedules.h"
#include "optimizers/sgd.h"

namespace keel {
namespace {

std::vector<std::string> slot_names(const TableOptimizer& t) {
  std::vector<std::string> out;
  for (const Slot& slot : t->rule->slots()) out.push_back(slot.name);
  return out;
}

using Names = std::vector<std::string>;

// One element through one step; returns the element, then its slots.
std::vector<float> stepped(const TableOptimizer& t, float weight, std::vector<float> gradients) {
  std::vector<float> state = {weight};
  for (const Slot& slot : t->rule->slots()) state.push_back(static_cast<float>(slot.initial));
  std::vector<float*> slots;
  for (size_t i = 1; i < state.size(); ++i) slots.push_back(&state[i]);
  int64_t iteration = 0;
  for (const float g : gradients) {
    t->rule->update(&state[0], &g, slots.data(), 1,
                    {.learning_rate = t.current_learning_rate(), .iteration = iteration++});
  }
  return state;
}

TEST(TableOptimizerTest, IsUnsetByDefault) {
  const TableOptimizer none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none, TableOptimizer());
  EXPECT_THROW(none.current_learning_rate(), RuntimeError);
}

TEST(TableOptimizerTest, IsMadeByName) {
  EXPECT_EQ(TableOptimizer("sgd").current_learning_rate(), 0.01);
  EXPECT_EQ(TableOptimizer("adagrad").current_learning_rate(), 0.001);
  EXPECT_EQ(TableOptimizer("adam")->class_name, "Adam");
  EXPECT_EQ(TableOptimizer(std::string("ftrl"))->class_name, "FTRL");
  EXPECT_THROW(TableOptimizer("SGD"), ValueError);
  EXPECT_THROW(TableOptimizer("rmsprop"), ValueError);
  EXPECT_THROW(TableOptimizer(""), ValueError);
}

TEST(TableOptimizerTest, NamesSlotsAsEnginesDo) {
  EXPECT_EQ(slot_names("sgd"), Names());
  EXPECT_EQ(slot_names("adagrad"), Names({"accumulators"}));
  EXPECT_EQ(slot_names("adam"), Names({"momenta", "velocities"}));
  EXPECT_EQ(slot_names("ftrl"), Names({"accumulators", "linears"}));
  EXPECT_EQ(TableOptimizer("adagrad")->rule->slots()[0].initial, 0.1);
}

TEST(TableOptimizerTest, ComparesByIdentity) {
  const TableOptimizer a("adam"), copy = a;
  EXPECT_EQ(a, copy);
  EXPECT_NE(a, TableOptimizer("adam"));
}

TEST(TableOptimizerTest, StepsAdagradWithoutEpsilon) {
  const std::vector<float> state =
      stepped(tpu::Adagrad{.learning_rate = 0.1}, 1, {0.4f, 0.2f});
  EXPECT_NEAR(state[0], 0.8850387, 1e-6);
  EXPECT_NEAR(state[1], 0.3, 1e-6);
}

TEST(TableOptimizerTest, StepsAdamWithoutBiasCorrection) {
  const tpu::Adam inside = {.learning_rate = 0.1, .epsilon = 0.5};
  tpu::Adam outside = inside;
  outside.sum_inside_sqrt = false;
  const double m = 0.1 * 8, v = 0.001 * 64;
  EXPECT_NEAR(stepped(inside, 0, {8})[0], -0.1 * m / std::sqrt(v + 0.25), 1e-6);
  EXPECT_NEAR(stepped(outside, 0, {8})[0], -0.1 * m / (std::sqrt(v) + 0.5), 1e-6);
  EXPECT_TRUE(TableOptimizer(inside)->lazy);
  EXPECT_FALSE(TableOptimizer(tpu::Adam{.lazy_adam = false})->lazy);
}

TEST(TableOptimizerTest, StepsFtrlInBothForms) {
  tpu::FTRL o = {.learning_rate = 0.1, .l1_regularization_strength = 0.01, .beta = 0.3};
  const std::vector<float> plain = stepped(o, 1, {0.4f, 0.2f});
  o.multiply_linear_by_learning_rate = true;
  const std::vector<float> scaled = stepped(o, 1, {0.4f, 0.2f});
  EXPECT_NEAR(plain[0], scaled[0], 1e-6);
  EXPECT_NEAR(plain[2] * 0.1, scaled[2], 1e-6);
}

TEST(TableOptimizerTest, CarriesTheCommonParameters) {
  const TableOptimizer t =
      tpu::Adagrad{.clip_weight_min = -2,
                          .clip_weight_max = 3,
                          .weight_decay_factor = 0.5,
                          .multiply_weight_decay_factor_by_learning_rate = true,
                          .clipvalue = 0.25};
  EXPECT_EQ(t->clip_weight_min, -2);
  EXPECT_EQ(t->clip_weight_max, 3);
  EXPECT_EQ(t->weight_decay_factor, 0.5);
  EXPECT_TRUE(t->multiply_weight_decay_factor_by_learning_rate);
  EXPECT_EQ(t->clip_gradient_min, -0.25);
  EXPECT_EQ(t->clip_gradient_max, 0.25);
  EXPECT_TRUE(t->use_gradient_accumulation);
  EXPECT_FALSE(TableOptimizer("sgd")->clip_gradient_max.has_value());
  EXPECT_FALSE(TableOptimizer(tpu::SGD{.use_gradient_accumulation = false})
                   ->use_gradient_accumulation);
}

TEST(TableOptimizerTest, CallsACallableEachTime) {
  int calls = 0;
  const TableOptimizer t = tpu::SGD{.learning_rate = [&] { return ++calls; }};
  EXPECT_EQ(t.current_learning_rate(), 1);
  EXPECT_EQ(t.current_learning_rate(), 2);
}

template <class Options>
void expect_refuses(const Options& options) {
  EXPECT_THROW(TableOptimizer{options}, ValueError);
}

TEST(TableOptimizerTest, RefusesParametersOutOfRange) {
  expect_refuses(tpu::Adagrad{.initial_accumulator_value = 0});
  expect_refuses(tpu::Adam{.beta_1 = 1});
  expect_refuses(tpu::Adam{.beta_2 = -0.1});
  expect_refuses(tpu::Adam{.epsilon = 0});
  expect_refuses(tpu::Adam{.lazy_adam = false, .use_gradient_accumulation = false});
  expect_refuses(tpu::FTRL{.learning_rate_power = 0.5});
  expect_refuses(tpu::FTRL{.l1_regularization_strength = -1});
  expect_refuses(tpu::FTRL{.l2_regularization_strength = -1});
  expect_refuses(tpu::FTRL{.initial_accumulator_value = 0});
  expect_refuses(tpu::SGD{.clipvalue = -1});
  expect_refuses(tpu::SGD{.use_gradient_accumulation = false, .clipvalue = 0});
  expect_refuses(tpu::SGD{.clip_weight_min = 1, .clip_weight_max = 0});
  expect_refuses(
      tpu::SGD{.learning_rate = optimizers::schedules::CosineDecay({.decay_steps = 1})});
}

// ---- Keras optimizers.

TEST(TableOptimizerTest, TranslatesSGD) {
  const optimizers::SGD sgd({.learning_rate = 0.25});
  const TableOptimizer t = sgd;
  EXPECT_EQ(t->class_name, "SGD");
  EXPECT_EQ(t->source, sgd.shared());
  EXPECT_TRUE(t->source_slot_names.empty());
  EXPECT_EQ(t.current_learning_rate(), 0.25);
}

TEST(TableOptimizerTest, TranslatesAdagradWithoutItsEpsilon) {
  const TableOptimizer t =
      optimizers::Adagrad({.learning_rate = 0.3, .initial_accumulator_value = 0.5});
  const auto& rule = dynamic_cast<const AdagradRule&>(*t->rule->base);
  EXPECT_EQ(rule.initial_accumulator_value, 0.5);
  EXPECT_EQ(rule.epsilon, 0);
  EXPECT_EQ(slot_names(t), Names({"accumulators"}));
  EXPECT_EQ(t->source_slot_names, Names({"accumulator"}));
}

TEST(TableOptimizerTest, TranslatesAdamToLazyWithTheSumInsideTheRoot) {
  const TableOptimizer t =
      optimizers::Adam({.learning_rate = 0.02, .beta_1 = 0.8, .beta_2 = 0.9, .epsilon = 1e-4});
  const AdamOptionsOfRule& o = dynamic_cast<const AdamRule&>(*t->rule->base).options;
  EXPECT_EQ(o.beta_1, 0.8);
  EXPECT_EQ(o.beta_2, 0.9);
  EXPECT_EQ(o.epsilon, 1e-4);
  EXPECT_TRUE(o.sum_inside_sqrt);
  EXPECT_FALSE(o.bias_correction);
  EXPECT_TRUE(t->lazy);
  EXPECT_EQ(t.current_learning_rate(), 0.02);
  EXPECT_EQ(slot_names(t), Names({"momenta", "velocities"}));
  EXPECT_EQ(t->source_slot_names, Names({"momentum", "velocity"}));
}

TEST(TableOptimizerTest, TranslatesFtrl) {
  const TableOptimizer t = optimizers::Ftrl({.learning_rate = 0.1,
                                             .learning_rate_power = -0.4,
                                             .initial_accumulator_value = 0.2,
                                             .l1_regularization_strength = 0.01,
                                             .l2_regularization_strength = 0.02,
                                             .beta = 0.3});
  const FtrlOptionsOfRule& o = dynamic_cast<const FtrlRule&>(*t->rule->base).options;
  EXPECT_EQ(t->class_name, "FTRL");
  EXPECT_EQ(o.learning_rate_power, -0.4);
  EXPECT_EQ(o.initial_accumulator_value, 0.2);
  EXPECT_EQ(o.l1, 0.01);
  EXPECT_EQ(o.l2, 0.02);
  EXPECT_EQ(o.beta, 0.3);
  EXPECT_FALSE(o.multiply_linear_by_learning_rate);
  EXPECT_EQ(t->source_slot_names, Names({"accumulator", "linear"}));
}

TEST(TableOptimizerTest, SeesTheRateOfItsSourceChange) {
  const optimizers::SGD number({.learning_rate = 0.5});
  const TableOptimizer of_number = number;
  number->set_learning_rate(0.125);
  EXPECT_EQ(of_number.current_learning_rate(), 0.125);

  int calls = 0;
  const TableOptimizer of_callable = optimizers::SGD({.learning_rate = [&] { return ++calls; }});
  EXPECT_EQ(of_callable.current_learning_rate(), 1);
  EXPECT_EQ(of_callable.current_learning_rate(), 2);
}

TEST(TableOptimizerTest, FollowsAScheduleByTheIterationsOfItsSource) {
  const optimizers::Adam adam(
      {.learning_rate = optimizers::schedules::ExponentialDecay(
           {.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 0.5})});
  const TableOptimizer t = adam;
  EXPECT_DOUBLE_EQ(t.current_learning_rate(), 1);
  adam->apply_gradients({Tensor::zeros({1})}, {Variable::virtual_trainable("dummy")});
  EXPECT_DOUBLE_EQ(t.current_learning_rate(), 0.5);
}

class OtherOptimizer final : public Optimizer {
 public:
  using Options = SGDOptions;
  explicit OtherOptimizer(const Options& options)
      : Optimizer("Other", std::make_shared<SGDRule>(), options.learning_rate, options.name) {}
  Config get_config() const override { return Config::dict(); }
};

TEST(TableOptimizerTest, RefusesWhatEnginesDoNotHave) {
  expect_refuses(optimizers::SGD({.momentum = 0.9}));
  expect_refuses(optimizers::SGD({.nesterov = true}));
  expect_refuses(optimizers::Adagrad({.epsilon = 1e-5}));
  expect_refuses(optimizers::Adagrad({.initial_accumulator_value = 0}));
  expect_refuses(optimizers::Adam({.epsilon = 0}));
  expect_refuses(Handle<OtherOptimizer>(SGDOptions{}));
  expect_refuses(OptimizerHandle(kAdopt, nullptr));
}

}  // namespace
}  // namespace keel
