#include <keel/optimizers/embedding/embedding_optimizer.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/embedding/sparse_core_optimizers.h>
#include <keel/optimizers/embedding/tpu_parameters.h>

#include "tests/support/optimizers.h"

namespace keel::embedding_optimizer_test {

using testing_support::embedding_slot_names;

using Names = std::vector<std::string>;

// Updates one element in one step; returns the element, then its slots.
std::vector<float> stepped(const EmbeddingOptimizer& t, float weight,
                           std::vector<float> gradients) {
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

TEST(EmbeddingOptimizerTest, IsUnsetByDefault) {
  const EmbeddingOptimizer none;
  EXPECT_FALSE(none);
  EXPECT_EQ(none, EmbeddingOptimizer());
  EXPECT_THROW(none.current_learning_rate(), RuntimeError);
}

TEST(EmbeddingOptimizerTest, IsMadeByName) {
  EXPECT_EQ(EmbeddingOptimizer("sgd").current_learning_rate(), 0.01);
  EXPECT_EQ(EmbeddingOptimizer("adagrad").current_learning_rate(), 0.001);
  EXPECT_EQ(EmbeddingOptimizer("adam")->class_name, "Adam");
  EXPECT_EQ(EmbeddingOptimizer(std::string("ftrl"))->class_name, "FTRL");
  EXPECT_THROW(EmbeddingOptimizer("SGD"), ValueError);
  EXPECT_THROW(EmbeddingOptimizer("rmsprop"), ValueError);
  EXPECT_THROW(EmbeddingOptimizer(""), ValueError);
}

TEST(EmbeddingOptimizerTest, NamesSlotsAsEnginesDo) {
  EXPECT_EQ(embedding_slot_names("sgd"), Names());
  EXPECT_EQ(embedding_slot_names("adagrad"), Names({"accumulators"}));
  EXPECT_EQ(embedding_slot_names("adam"), Names({"momenta", "velocities"}));
  EXPECT_EQ(embedding_slot_names("ftrl"), Names({"accumulators", "linears"}));
  EXPECT_EQ(EmbeddingOptimizer("adagrad")->rule->slots()[0].initial, 0.1);
}

TEST(SpecRowsF, F10_OptimizerStrings) {
  // A number cannot be passed as a name: there is no such conversion in C++.
  for (const auto& [name, rate] : std::map<std::string, double>{
           {"sgd", 0.01}, {"adagrad", 0.001}, {"adam", 0.001}, {"ftrl", 0.001}}) {
    EXPECT_EQ(EmbeddingOptimizer(name).current_learning_rate(), rate) << name;
  }
  EXPECT_EQ(EmbeddingOptimizer("sgd"), EmbeddingOptimizer(tpu::SGD{}));
  EXPECT_EQ(
      EmbeddingOptimizer("adagrad"),
      EmbeddingOptimizer(tpu::Adagrad{.learning_rate = 0.001, .initial_accumulator_value = 0.1}));
  EXPECT_EQ(EmbeddingOptimizer("adam"), EmbeddingOptimizer(tpu::Adam{}));
  EXPECT_EQ(EmbeddingOptimizer("ftrl"), EmbeddingOptimizer(tpu::FTRL{}));
  EXPECT_THROW(EmbeddingOptimizer("SGD"), ValueError);
  EXPECT_THROW(EmbeddingOptimizer("rmsprop"), ValueError);
}

double half() { return 0.5; }

void expect_equal(const EmbeddingOptimizer& a, const EmbeddingOptimizer& b) {
  EXPECT_EQ(a, b);
  EXPECT_EQ(std::hash<EmbeddingOptimizer>()(a), std::hash<EmbeddingOptimizer>()(b));
}

TEST(SpecRowsA, A16_OptimizersAreEqualByValueAndCallablesByIdentity) {
  expect_equal(tpu::SGD{.learning_rate = 0.1}, tpu::SGD{.learning_rate = 0.1});
  EXPECT_NE(EmbeddingOptimizer(tpu::SGD{.learning_rate = 0.1}),
            EmbeddingOptimizer(tpu::SGD{.learning_rate = 0.2}));
  EXPECT_NE(EmbeddingOptimizer(tpu::SGD{.learning_rate = 0.1}),
            EmbeddingOptimizer(tpu::Adagrad{.learning_rate = 0.1}));
  int calls = 0;
  const LearningRate counted = [&calls] { return ++calls; };
  const LearningRate same_text = [&calls] { return ++calls; };
  expect_equal(tpu::SGD{.learning_rate = counted}, tpu::SGD{.learning_rate = counted});
  EXPECT_NE(EmbeddingOptimizer(tpu::SGD{.learning_rate = counted}),
            EmbeddingOptimizer(tpu::SGD{.learning_rate = same_text}));
  expect_equal(tpu::SGD{.learning_rate = half}, tpu::SGD{.learning_rate = half});
  const auto one = [] { return 0.5; };
  const auto other = [] { return 0.5; };
  expect_equal(tpu::SGD{.learning_rate = one}, tpu::SGD{.learning_rate = one});
  EXPECT_NE(EmbeddingOptimizer(tpu::SGD{.learning_rate = one}),
            EmbeddingOptimizer(tpu::SGD{.learning_rate = other}));
  EXPECT_NE(EmbeddingOptimizer(tpu::SGD{.learning_rate = half}),
            EmbeddingOptimizer(tpu::SGD{.learning_rate = 0.5}));
}

TEST(EmbeddingOptimizerTest, EqualityComparesEveryField) {
  const EmbeddingOptimizer plain = tpu::Adam{};
  const auto zeros = [](const TableVariable&, const std::vector<std::string>& names,
                        const std::vector<Initializer>&) {
    SlotVariables out;
    for (const std::string& name : names) out[name] = initializers::zeros();
    return out;
  };
  const std::vector<EmbeddingOptimizer> others = {
      tpu::Adam{.learning_rate = 0.5},
      tpu::Adam{.beta_1 = 0.5},
      tpu::Adam{.beta_2 = 0.5},
      tpu::Adam{.epsilon = 0.5},
      tpu::Adam{.lazy_adam = false},
      tpu::Adam{.sum_inside_sqrt = false},
      tpu::Adam{.use_gradient_accumulation = false},
      tpu::Adam{.clip_weight_min = 0},
      tpu::Adam{.clip_weight_max = 0},
      tpu::Adam{.weight_decay_factor = 0.5},
      tpu::Adam{.multiply_weight_decay_factor_by_learning_rate = true},
      tpu::Adam{.clipvalue = 1},
      tpu::Adam{.clipvalue = {-1, std::nullopt}},
      tpu::Adam{.low_dimensional_packing_status = true},
      tpu::Adam{.slot_variable_creation_fn = zeros}};
  for (size_t i = 0; i < others.size(); ++i) {
    EXPECT_NE(plain, others[i]) << i;
    for (size_t j = 0; j < others.size(); ++j) EXPECT_EQ(others[i] == others[j], i == j) << i << j;
  }
  expect_equal(tpu::Adam{.slot_variable_creation_fn = zeros},
               tpu::Adam{.slot_variable_creation_fn = zeros});
  expect_equal(tpu::Adam{.clip_weight_min = 0.0}, tpu::Adam{.clip_weight_min = -0.0});
  EXPECT_NE(EmbeddingOptimizer(), plain);
}

TEST(EmbeddingOptimizerTest, WithLearningRateReplacesTheRate) {
  const EmbeddingOptimizer adagrad = tpu::AdagradParameters{.learning_rate = 0.5};
  const EmbeddingOptimizer faster = adagrad.with_learning_rate(2.0);
  EXPECT_EQ(adagrad.current_learning_rate(), 0.5);
  EXPECT_EQ(faster.current_learning_rate(), 2);
  EXPECT_TRUE(faster->v1_parameters);
  expect_equal(faster, tpu::AdagradParameters{.learning_rate = 2});
  EXPECT_EQ(adagrad.with_learning_rate(half).current_learning_rate(), 0.5);
  EXPECT_THROW(EmbeddingOptimizer().with_learning_rate(1.0), RuntimeError);
}

TEST(EmbeddingOptimizerTest, CustomOptimizersAreEqualIfAllTheirPartsAre) {
  const CustomComputation f = [](const CustomRow&) {};
  const CustomComputation g = [](const CustomRow&) {};
  const Initializer one = initializers::ones();
  const tpu::CustomOptimizer base = {.custom_computation = f,
                                     .slot_names = {"s"},
                                     .slot_initializers = {one},
                                     .hyperparameters = {1.0}};
  expect_equal(base, base);
  auto other = base;
  other.custom_computation = g;
  EXPECT_NE(EmbeddingOptimizer(base), EmbeddingOptimizer(other));
  other = base;
  other.slot_names = {"t"};
  EXPECT_NE(EmbeddingOptimizer(base), EmbeddingOptimizer(other));
  other = base;
  other.slot_initializers = {initializers::zeros()};
  EXPECT_NE(EmbeddingOptimizer(base), EmbeddingOptimizer(other));
  other = base;
  other.hyperparameters = {2.0};
  EXPECT_NE(EmbeddingOptimizer(base), EmbeddingOptimizer(other));
}

template <class Options>
void expect_round_trip(const Options& options) {
  const EmbeddingOptimizer t = options;
  EmbeddingOptimizer read;
  decode(parse_json(to_json(encode(t))), read);
  EXPECT_EQ(read, t) << to_json(encode(t));
}

TEST(EmbeddingOptimizerTest, RoundTripsThroughItsConfig) {
  expect_round_trip(tpu::SGD{.learning_rate = 0.5, .clipvalue = {std::nullopt, 0.25}});
  expect_round_trip(tpu::Adagrad{.initial_accumulator_value = 0.5, .clipvalue = 2});
  expect_round_trip(tpu::Adam{.lazy_adam = false, .low_dimensional_packing_status = true});
  expect_round_trip(tpu::FTRL{.allow_zero_accumulator = true, .weight_decay_factor = 0.5});
  expect_round_trip(tpu::AdagradMomentum{.momentum = 0.5,
                                         .use_nesterov = true,
                                         .exponent = 3,
                                         .beta2 = 0.5,
                                         .epsilon = 0.1,
                                         .use_gradient_accumulation = false});
  expect_round_trip(tpu::LaProp{.b1 = 0.5, .b2 = 0.25, .eps = 1e-8, .initial_slot_value = 2});
  expect_round_trip(tpu::LaProp{.global_step = 7.0});
  expect_round_trip(tpu::F2A{.rho = 0.25,
                             .initial_local_step_value = 1,
                             .l2_regularization_strength = 0.5,
                             .max_lr_multiplier = 4,
                             .global_step = 3.0});
  expect_round_trip(tpu::StochasticGradientDescentParameters{.learning_rate = 0.5});
  expect_round_trip(tpu::RMSPropParameters{
      .learning_rate = 0.5, .rho = 0.1, .momentum = 0.2, .epsilon = 0.3, .clip_gradient_max = 1});
  expect_round_trip(tpu::FrequencyEstimatorParameters{
      .tau = 0.5, .max_delta = 10, .outlier_threshold = 2, .weight_exponent = 1});
  EmbeddingOptimizer none = "sgd";
  decode(encode(EmbeddingOptimizer()), none);
  EXPECT_FALSE(none);
}

TEST(EmbeddingOptimizerTest, SerializesAFunctionAsItsCurrentRate) {
  EmbeddingOptimizer read;
  decode(encode(tpu::SGD{.learning_rate = half}), read);
  EXPECT_EQ(read, EmbeddingOptimizer(tpu::SGD{.learning_rate = 0.5}));
}

TEST(EmbeddingOptimizerTest, FunctionsCannotBeSerialized) {
  EXPECT_THROW(encode(tpu::CustomOptimizer{.custom_computation = [](const CustomRow&) {}}),
               NotImplementedError);
  EXPECT_THROW(
      encode(tpu::Adam{.slot_variable_creation_fn =
                           [](const TableVariable&, const std::vector<std::string>&,
                              const std::vector<Initializer>&) { return SlotVariables{}; }}),
      NotImplementedError);
}

TEST(EmbeddingOptimizerTest, RejectsConfigsOfNoClass) {
  EmbeddingOptimizer t;
  EXPECT_THROW(decode(parse_json(R"({"class_name": "Lion", "config": {}})"), t), ValueError);
  EXPECT_THROW(decode(parse_json(R"({"class_name": "SGD", "config": {"rho": 1}})"), t), ValueError);
}

TEST(EmbeddingOptimizerTest, StepsAdagradWithoutEpsilon) {
  const std::vector<float> state = stepped(tpu::Adagrad{.learning_rate = 0.1}, 1, {0.4f, 0.2f});
  EXPECT_NEAR(state[0], 0.8850387, 1e-6);
  EXPECT_NEAR(state[1], 0.3, 1e-6);
}

TEST(EmbeddingOptimizerTest, StepsAdamWithoutBiasCorrection) {
  const tpu::Adam inside = {.learning_rate = 0.1, .epsilon = 0.5};
  tpu::Adam outside = inside;
  outside.sum_inside_sqrt = false;
  const double m = 0.1 * 8, v = 0.001 * 64;
  EXPECT_NEAR(stepped(inside, 0, {8})[0], -0.1 * m / std::sqrt(v + 0.25), 1e-6);
  EXPECT_NEAR(stepped(outside, 0, {8})[0], -0.1 * m / (std::sqrt(v) + 0.5), 1e-6);
  EXPECT_TRUE(EmbeddingOptimizer(inside)->lazy);
  EXPECT_FALSE(EmbeddingOptimizer(tpu::Adam{.lazy_adam = false})->lazy);
}

TEST(EmbeddingOptimizerTest, StepsFtrlInBothForms) {
  tpu::FTRL o = {.learning_rate = 0.1, .l1_regularization_strength = 0.01, .beta = 0.3};
  const std::vector<float> plain = stepped(o, 1, {0.4f, 0.2f});
  o.multiply_linear_by_learning_rate = true;
  const std::vector<float> scaled = stepped(o, 1, {0.4f, 0.2f});
  EXPECT_NEAR(plain[0], scaled[0], 1e-6);
  EXPECT_NEAR(plain[2] * 0.1, scaled[2], 1e-6);
}

TEST(EmbeddingOptimizerTest, PassesOnTheCommonParameters) {
  const EmbeddingOptimizer t = tpu::Adagrad{.clip_weight_min = -2,
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
  EXPECT_FALSE(EmbeddingOptimizer("sgd")->clip_gradient_max.has_value());
  EXPECT_FALSE(
      EmbeddingOptimizer(tpu::SGD{.use_gradient_accumulation = false})->use_gradient_accumulation);
}

TEST(EmbeddingOptimizerTest, CallsACallableEachTime) {
  int calls = 0;
  const EmbeddingOptimizer t = tpu::SGD{.learning_rate = [&] { return ++calls; }};
  EXPECT_EQ(t.current_learning_rate(), 1);
  EXPECT_EQ(t.current_learning_rate(), 2);
}

TEST(EmbeddingOptimizerTest, WithLearningRateKeepsOtherOptions) {
  const EmbeddingOptimizer t = tpu::Adagrad{.learning_rate = 0.5, .initial_accumulator_value = 2};
  const EmbeddingOptimizer other = t.with_learning_rate(0.25);
  EXPECT_EQ(other.current_learning_rate(), 0.25);
  EXPECT_EQ(other->class_name, "Adagrad");
  EXPECT_EQ(other->rule, t->rule);
  EXPECT_EQ(t.current_learning_rate(), 0.5);
  EXPECT_EQ(t.with_learning_rate([] { return 3.0; }).current_learning_rate(), 3);
  EXPECT_THROW(EmbeddingOptimizer().with_learning_rate(1.0), RuntimeError);
}

}  // namespace keel::embedding_optimizer_test
