#include <gtest/gtest.h>

#include <keel/autodiff/variable.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/optimizers.h"

namespace keel::translate_keras_optimizer_test {

using testing_support::embedding_slot_names;
using testing_support::expect_invalid;

using Names = std::vector<std::string>;

TEST(TranslateKerasOptimizerTest, TranslatesSGD) {
  const optimizers::SGD sgd({.learning_rate = 0.25});
  const EmbeddingOptimizer t = sgd;
  EXPECT_EQ(t->class_name, "SGD");
  EXPECT_EQ(t->source, sgd.shared());
  EXPECT_TRUE(t->source_slot_names.empty());
  EXPECT_EQ(t.current_learning_rate(), 0.25);
}

TEST(TranslateKerasOptimizerTest, TranslatesAdagradWithoutItsEpsilon) {
  const EmbeddingOptimizer t =
      optimizers::Adagrad({.learning_rate = 0.3, .initial_accumulator_value = 0.5});
  const auto& rule = dynamic_cast<const AdagradRule&>(*t->rule->base);
  EXPECT_EQ(rule.initial_accumulator_value, 0.5);
  EXPECT_EQ(rule.epsilon, 0);
  EXPECT_EQ(embedding_slot_names(t), Names({"accumulators"}));
  EXPECT_EQ(t->source_slot_names, Names({"accumulator"}));
}

TEST(TranslateKerasOptimizerTest, TranslatesAdamToLazyWithTheSumInsideTheRoot) {
  const EmbeddingOptimizer t =
      optimizers::Adam({.learning_rate = 0.02, .beta_1 = 0.8, .beta_2 = 0.9, .epsilon = 1e-4});
  const AdamRuleOptions& o = dynamic_cast<const AdamRule&>(*t->rule->base).options;
  EXPECT_EQ(o.beta_1, 0.8);
  EXPECT_EQ(o.beta_2, 0.9);
  EXPECT_EQ(o.epsilon, 1e-4);
  EXPECT_TRUE(o.sum_inside_sqrt);
  EXPECT_FALSE(o.bias_correction);
  EXPECT_TRUE(t->lazy);
  EXPECT_EQ(t.current_learning_rate(), 0.02);
  EXPECT_EQ(embedding_slot_names(t), Names({"momenta", "velocities"}));
  EXPECT_EQ(t->source_slot_names, Names({"momentum", "velocity"}));
}

TEST(TranslateKerasOptimizerTest, TranslatesFtrl) {
  const EmbeddingOptimizer t = optimizers::Ftrl({.learning_rate = 0.1,
                                                 .learning_rate_power = -0.4,
                                                 .initial_accumulator_value = 0.2,
                                                 .l1_regularization_strength = 0.01,
                                                 .l2_regularization_strength = 0.02,
                                                 .beta = 0.3});
  const FtrlRuleOptions& o = dynamic_cast<const FtrlRule&>(*t->rule->base).options;
  EXPECT_EQ(t->class_name, "FTRL");
  EXPECT_EQ(o.learning_rate_power, -0.4);
  EXPECT_EQ(o.initial_accumulator_value, 0.2);
  EXPECT_EQ(o.l1, 0.01);
  EXPECT_EQ(o.l2, 0.02);
  EXPECT_EQ(o.beta, 0.3);
  EXPECT_FALSE(o.multiply_linear_by_learning_rate);
  EXPECT_EQ(t->source_slot_names, Names({"accumulator", "linear"}));
}

TEST(TranslateKerasOptimizerTest, FollowsTheRateOfItsSource) {
  const optimizers::SGD number({.learning_rate = 0.5});
  const EmbeddingOptimizer of_number = number;
  number->set_learning_rate(0.125);
  EXPECT_EQ(of_number.current_learning_rate(), 0.125);

  int calls = 0;
  const EmbeddingOptimizer of_callable =
      optimizers::SGD({.learning_rate = [&] { return ++calls; }});
  EXPECT_EQ(of_callable.current_learning_rate(), 1);
  EXPECT_EQ(of_callable.current_learning_rate(), 2);
}

TEST(TranslateKerasOptimizerTest, FollowsAScheduleByTheIterationsOfItsSource) {
  const optimizers::Adam adam(
      {.learning_rate = optimizers::schedules::ExponentialDecay(
           {.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 0.5})});
  const EmbeddingOptimizer t = adam;
  EXPECT_DOUBLE_EQ(t.current_learning_rate(), 1);
  adam->apply_gradients({Tensor::zeros({1})}, {Variable::virtual_trainable("dummy")});
  EXPECT_DOUBLE_EQ(t.current_learning_rate(), 0.5);
}

class OtherOptimizer final : public Optimizer {
 public:
  using Options = SGDOptions;
  explicit OtherOptimizer(const Options& options)
      : Optimizer("Other", std::make_shared<SGDRule>(), options) {}
  Config get_config() const override { return Config::dict(); }
};

TEST(TranslateKerasOptimizerTest, RejectsOptionsThatEnginesLack) {
  expect_invalid(optimizers::SGD({.momentum = 0.9}));
  expect_invalid(optimizers::SGD({.nesterov = true}));
  expect_invalid(optimizers::Adagrad({.epsilon = 1e-5}));
  expect_invalid(optimizers::Adagrad({.initial_accumulator_value = 0}));
  expect_invalid(optimizers::Adam({.epsilon = 0}));
  expect_invalid(Handle<OtherOptimizer>(SGDOptions{}));
  expect_invalid(OptimizerHandle(kAdopt, nullptr));
}

TEST(TranslateKerasOptimizerTest, EqualsATranslationOfTheSameObjectOnly) {
  const optimizers::SGD sgd({.learning_rate = 0.25});
  const EmbeddingOptimizer a = sgd, b = translate_keras_optimizer(sgd);
  EXPECT_EQ(a, b);
  EXPECT_EQ(a.hash(), b.hash());
  EXPECT_NE(a, EmbeddingOptimizer(optimizers::SGD({.learning_rate = 0.25})));
  EXPECT_NE(a, EmbeddingOptimizer(tpu::SGD{.learning_rate = 0.25}));
}

// Keras 3 has no `decay` option, so there is nothing to reject for it.
TEST(SpecRowsF, F11_RejectsKerasSettingsThatEnginesDoNotHave) {
  expect_invalid(optimizers::SGD({.momentum = 0.9}));
  expect_invalid(optimizers::SGD({.momentum = 0.9, .nesterov = true}));
  expect_invalid(optimizers::SGD({.nesterov = true}));
  expect_invalid(optimizers::Adagrad({.epsilon = 1e-5}));
  expect_invalid(optimizers::Adam({.amsgrad = true}));
  expect_invalid(optimizers::Ftrl({.l2_shrinkage_regularization_strength = 0.1}));
  expect_invalid(optimizers::RMSprop(RMSpropOptions{}));
  expect_invalid(Handle<OtherOptimizer>(SGDOptions{}));
}

// TensorFlow rejects clipping; engines of Keel clip.
TEST(TranslateKerasOptimizerTest, CarriesBoundsOfGradients) {
  for (const char* name : {"SGD", "Adagrad", "Adam", "Ftrl"}) {
    for (const double bound : {0.5, 0.0}) {
      Config config = optimizers::get(name)->get_config();
      config.set("clipvalue", bound);
      const EmbeddingOptimizer t = translate_keras_optimizer(
          optimizers::deserialize(Config::dict({{"class_name", name}, {"config", config}})));
      const auto limit = bound == 0 ? std::optional<double>() : bound;
      EXPECT_EQ(t->clip_gradient_max, limit) << name;
      EXPECT_EQ(t->clip_gradient_min, limit ? std::optional(-*limit) : limit) << name;
    }
  }
}

TEST(TranslateKerasOptimizerTest, CarriesNorms) {
  for (const char* name : {"SGD", "Adagrad", "Adam", "Ftrl"}) {
    for (const char* key : {"clipnorm", "global_clipnorm"}) {
      Config config = optimizers::get(name)->get_config();
      config.set(key, 0.5);
      const EmbeddingOptimizer t = translate_keras_optimizer(
          optimizers::deserialize(Config::dict({{"class_name", name}, {"config", config}})));
      const bool by_all = std::string(key) == "global_clipnorm";
      EXPECT_EQ(t->clipnorm, by_all ? 0 : 0.5) << name;
      EXPECT_EQ(t->global_clipnorm, by_all ? 0.5 : 0) << name;
    }
  }
}

TEST(TranslateKerasOptimizerTest, RejectsOptionsThatRequireWholeVariables) {
  expect_invalid(optimizers::SGD({.use_ema = true}));
  expect_invalid(optimizers::SGD({.loss_scale_factor = 2}));
  expect_invalid(optimizers::SGD({.gradient_accumulation_steps = 2}));
  expect_invalid(optimizers::AdamW(AdamWOptions{}));
}

TEST(TranslateKerasOptimizerTest, TranslatesWeightDecay) {
  const auto expect_decay = [](const EmbeddingOptimizer& t) {
    EXPECT_EQ(t->weight_decay_factor, 0.25);
    EXPECT_TRUE(t->multiply_weight_decay_factor_by_learning_rate);
  };
  expect_decay(optimizers::SGD({.weight_decay = 0.25}));
  expect_decay(optimizers::Adagrad({.weight_decay = 0.25}));
  expect_decay(optimizers::Adam({.weight_decay = 0.25}));
  expect_decay(optimizers::Ftrl({.weight_decay = 0.25}));
  EXPECT_EQ(EmbeddingOptimizer(optimizers::SGD({.weight_decay = 0}))->weight_decay_factor, 0);

  const optimizers::SGD some({.weight_decay = 0.25});
  some->exclude_from_weight_decay({}, {"table"});
  expect_invalid(some);
}

TEST(SpecRowsF, F12_CarriesKerasSettings) {
  const auto config = [](const OptimizerHandle& keras) {
    return translate_keras_optimizer(keras)->config["config"];
  };
  const optimizers::Adam adam(
      {.learning_rate = 0.02, .beta_1 = 0.8, .beta_2 = 0.9, .epsilon = 1e-4});
  EXPECT_EQ(EmbeddingOptimizer(adam).current_learning_rate(), 0.02);
  EXPECT_EQ(config(adam)["beta_1"].number(), 0.8);
  EXPECT_EQ(config(adam)["beta_2"].number(), 0.9);
  EXPECT_EQ(config(adam)["epsilon"].number(), 1e-4);
  EXPECT_TRUE(config(adam)["lazy_adam"].boolean());
  EXPECT_TRUE(config(adam)["sum_inside_sqrt"].boolean());
  // Keras 3 names the slots that Keras 2 called m and v.
  EXPECT_EQ(EmbeddingOptimizer(adam)->source_slot_names, Names({"momentum", "velocity"}));

  const optimizers::Adagrad adagrad({.learning_rate = 0.3, .initial_accumulator_value = 0.5});
  EXPECT_EQ(EmbeddingOptimizer(adagrad).current_learning_rate(), 0.3);
  EXPECT_EQ(config(adagrad)["initial_accumulator_value"].number(), 0.5);
  EXPECT_EQ(EmbeddingOptimizer(adagrad)->source_slot_names, Names({"accumulator"}));

  const optimizers::Ftrl ftrl({.learning_rate = 0.1,
                               .learning_rate_power = -0.4,
                               .initial_accumulator_value = 0.2,
                               .l1_regularization_strength = 0.01,
                               .l2_regularization_strength = 0.02,
                               .beta = 0.3});
  EXPECT_EQ(EmbeddingOptimizer(ftrl).current_learning_rate(), 0.1);
  EXPECT_EQ(config(ftrl)["learning_rate_power"].number(), -0.4);
  EXPECT_EQ(config(ftrl)["initial_accumulator_value"].number(), 0.2);
  EXPECT_EQ(config(ftrl)["l1_regularization_strength"].number(), 0.01);
  EXPECT_EQ(config(ftrl)["l2_regularization_strength"].number(), 0.02);
  EXPECT_EQ(config(ftrl)["beta"].number(), 0.3);
  EXPECT_EQ(EmbeddingOptimizer(ftrl)->source_slot_names, Names({"accumulator", "linear"}));
}

}  // namespace keel::translate_keras_optimizer_test
