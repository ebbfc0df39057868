// Tests optimizers/multi_optimizer.cc and step/unscaled_gradient.cc.
#include <keel/optimizers/multi_optimizer.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/loss_scale.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"

namespace keel::multi_optimizer_test {

using testing::HasSubstr;
using testing_support::message_of;
using Values = std::vector<float>;

Variable variable(const std::string& path, Values values = {1, 2}) {
  Variable out(Tensor::from(values, {std::ssize(values)}), {.name = "w"});
  out.set_path(path);
  return out;
}

Gradient gradient(const Values& values) { return Tensor::from(values, {std::ssize(values)}); }

Values values_of(const Variable& variable) { return variable.read().to_vector<float>(); }

// SGD with a rate of 1, and Adam for the variables of "deep".
optimizers::MultiOptimizer sgd_and_adam(std::optional<double> loss_scale_factor = {}) {
  return optimizers::MultiOptimizer(
      {.optimizer_map = OptimizerMap(optimizers::SGD({.learning_rate = 1}),
                                     {{"deep/.*", optimizers::Adam({.learning_rate = 0.1})}}),
       .loss_scale_factor = loss_scale_factor});
}

TEST(MultiOptimizerTest, EachVariableIsUpdatedByItsOptimizer) {
  const optimizers::MultiOptimizer both = sgd_and_adam();
  const optimizers::Adam adam({.learning_rate = 0.1});
  const Variable wide = variable("wide/kernel"), deep = variable("deep/kernel");
  const Variable alone = variable("deep/kernel");
  for (const float g : {0.5F, -1.0F, 2.0F}) {
    both->apply_gradients({gradient({g, 1}), gradient({g, 3})}, {deep, wide});
    adam->apply_gradients({gradient({g, 1})}, {alone});
  }
  EXPECT_EQ(values_of(deep), values_of(alone));
  EXPECT_EQ(values_of(wide), (Values{-0.5, -7}));
  EXPECT_EQ(both->iterations(), 3);
  EXPECT_EQ(both->slots(wide).size(), 0U);
  EXPECT_EQ(both->slots(deep).size(), 2U);
  EXPECT_EQ(both->optimizers().size(), 2U);
  EXPECT_EQ(both->optimizers()[1]->iterations(), 3);
  EXPECT_EQ(both->optimizer_of(deep).class_name(), "Adam");
  EXPECT_EQ(&adam->optimizer_of(deep), &*adam);
}

TEST(MultiOptimizerTest, SparseGradientsUpdateTheirRowsOnly) {
  const optimizers::MultiOptimizer both(
      {.optimizer_map = OptimizerMap(
           optimizers::SGD({.learning_rate = 1}),
           {{"table", optimizers::Adagrad(
                          {.learning_rate = 1, .initial_accumulator_value = 0, .epsilon = 0})}})});
  Variable table(Tensor::zeros({3, 1}), {.name = "table"});
  table.set_path("table");
  const Variable dense = variable("dense");
  both->apply_gradients({IndexedSlices{.ids = Tensor::from<int64_t>({1}, {1}),
                                       .values = Tensor::from<float>({4}, {1, 1}),
                                       .dense_shape = {3, 1}},
                         gradient({1, 1})},
                        {table, dense});
  EXPECT_EQ(values_of(table), (Values{0, -1, 0}));
  EXPECT_EQ(values_of(dense), (Values{0, 1}));
}

TEST(MultiOptimizerTest, ClippingAndAccumulationAreThoseOfEachOptimizer) {
  const optimizers::MultiOptimizer both(
      {.optimizer_map = OptimizerMap(
           optimizers::SGD({.learning_rate = 1, .global_clipnorm = 5}),
           {{"rare", optimizers::SGD({.learning_rate = 1, .gradient_accumulation_steps = 2})}})});
  const Variable a = variable("a"), b = variable("b"), rare = variable("rare");
  const std::vector<Gradient> gradients = {gradient({6, 0}), gradient({0, 8}), gradient({60, 80})};
  both->apply_gradients(gradients, {a, b, rare});
  EXPECT_EQ(values_of(a), (Values{-2, 2}));  // the norm of the gradients of a and b is 10
  EXPECT_EQ(values_of(b), (Values{1, -2}));
  EXPECT_EQ(values_of(rare), (Values{1, 2}));
  both->apply_gradients(gradients, {a, b, rare});
  EXPECT_EQ(values_of(rare), (Values{-59, -78}));
  EXPECT_EQ(both->iterations(), 2);
  EXPECT_EQ(both->optimizers()[1]->iterations(), 1);
}

TEST(MultiOptimizerTest, KeysArePathsOrRegularExpressionsOfWholePaths) {
  const optimizers::SGD others({}), by_path({}), by_pattern({});
  const OptimizerMap map(others, {{"encoder/.*", by_pattern}, {"encoder/last/kernel", by_path}});
  EXPECT_EQ(map["encoder/first/kernel"], OptimizerHandle(by_pattern));
  EXPECT_EQ(map["encoder/last/kernel"], OptimizerHandle(by_path));
  EXPECT_EQ(map["the_encoder/kernel"], OptimizerHandle(others));
  const OptimizerMap twice(others, {{"a.*", by_path}, {".*b", by_pattern}, {"c", by_path}});
  EXPECT_THAT(message_of<ValueError>([&] { twice["ab"]; }),
              HasSubstr("the keys 'a.*' and '.*b' match the variable ab"));
  EXPECT_EQ(twice.optimizers().size(), 3U);
}

TEST(MultiOptimizerTest, TheLossScaleFactorHoldsForAllOptimizers) {
  const optimizers::MultiOptimizer both = sgd_and_adam(4);
  const Variable w = variable("w");
  EXPECT_EQ(both->scale_loss(Tensor::scalar(3.0F)).item<float>(), 12);
  both->apply_gradients({gradient({4, 8})}, {w});
  EXPECT_EQ(values_of(w), (Values{0, 0}));
}

TEST(MultiOptimizerTest, ALossScaleOptimizerMayWrapIt) {
  const optimizers::MultiOptimizer both = sgd_and_adam();
  const optimizers::LossScaleOptimizer scaled({.inner_optimizer = both, .initial_scale = 8});
  const Variable w = variable("w"), deep = variable("deep/w");
  scaled->apply_gradients({gradient({8, 16}), gradient({8, 8})}, {w, deep});
  EXPECT_EQ(values_of(w), (Values{0, 0}));
  EXPECT_EQ(scaled->slots(deep).size(), 2U);
  EXPECT_EQ(scaled->iterations(), 1);
  EXPECT_THROW(scaled->learning_rate(), RuntimeError);
  // 4 of LossScaleOptimizer, 2 of MultiOptimizer, and iteration, momentum and velocity.
  EXPECT_EQ(scaled->variables({w, deep}).size(), 4U + 2 + 1 + 3);
  scaled->set_iterations(5);
  EXPECT_EQ(both->optimizers()[0]->iterations(), 5);
}

TEST(MultiOptimizerTest, AnOptimizerWithoutGradientsIsAnErrorBeforeAnythingChanges) {
  const optimizers::MultiOptimizer both = sgd_and_adam();
  const Variable w = variable("w"), deep = variable("deep/w");
  EXPECT_THAT(message_of<ValueError>(
                  [&] { both->apply_gradients({gradient({1, 1}), Gradient()}, {w, deep}); }),
              HasSubstr("none of the variables of 'adam' has a gradient; check that the loss "
                        "depends on them: deep/w"));
  EXPECT_THROW(both->apply_gradients({gradient({1, 1}), gradient({1})}, {w, deep}), ValueError);
  EXPECT_EQ(values_of(w), (Values{1, 2}));
  EXPECT_EQ(both->iterations(), 0);
}

TEST(MultiOptimizerTest, LearningRatesAreThoseOfTheOptimizers) {
  const optimizers::MultiOptimizer both = sgd_and_adam();
  EXPECT_THAT(message_of<RuntimeError>([&] { both->learning_rate(); }),
              HasSubstr("MultiOptimizer.learning_rate: each optimizer has its own"));
  EXPECT_THROW(both->set_learning_rate(0.5), RuntimeError);
  both->optimizers()[0]->set_learning_rate(0.5);
  const Variable w = variable("w");
  both->apply_gradients({gradient({1, 1})}, {w});
  EXPECT_EQ(values_of(w), (Values{0.5, 1.5}));
}

TEST(MultiOptimizerTest, DecayAndAveragesFollowTheOptimizers) {
  const optimizers::MultiOptimizer both(
      {.optimizer_map = OptimizerMap(
           optimizers::SGD({.learning_rate = 1, .weight_decay = 0.5}),
           {{"mean",
             optimizers::SGD({.learning_rate = 1, .use_ema = true, .ema_momentum = 0.5})}})});
  const Variable kept = variable("kept"), decayed = variable("decayed"), mean = variable("mean");
  both->exclude_from_weight_decay({kept});
  EXPECT_TRUE(both->excludes_from_weight_decay());
  for (int i = 0; i < 2; ++i) {
    both->apply_gradients({gradient({0, 0}), gradient({0, 0}), gradient({1, 1})},
                          {kept, decayed, mean});
  }
  EXPECT_EQ(values_of(kept), (Values{1, 2}));
  EXPECT_EQ(values_of(decayed), (Values{0.25, 0.5}));
  EXPECT_EQ(values_of(mean), (Values{-1, 0}));
  both->finalize_variable_values({kept, decayed, mean});
  EXPECT_EQ(values_of(mean), (Values{-0.5, 0.5}));  // of 0 and -1, and of 1 and 0
  EXPECT_EQ(values_of(decayed), (Values{0.25, 0.5}));
}

TEST(MultiOptimizerTest, ReplicasSumTheirGradients) {
  distribute::TPUStrategy strategy({.num_cores = 3});
  const auto scope = strategy.scope();
  const optimizers::MultiOptimizer both = sgd_and_adam();
  const Variable wide = variable("wide"), deep = variable("deep/w");
  const auto step = [&](const std::vector<Variable>& variables) {
    strategy.run(
        [&](const Tensor& g) {
          const std::vector<Gradient> gradients(variables.size(), g);
          both->apply_gradients(gradients, variables);
        },
        strategy.distribute_values_from_function(
            [](int r) { return Tensor::full<float>({2}, static_cast<float>(r + 1)); }));
  };
  step({wide, deep});
  step({wide});
  EXPECT_EQ(values_of(wide), (Values{-11, -10}));
  EXPECT_EQ(both->iterations(), 2);
  EXPECT_EQ(both->optimizers()[1]->iterations(), 1);
}

TEST(MultiOptimizerTest, ConfigsHaveTheArgumentsOfKeras) {
  const OptimizerHandle both = sgd_and_adam(2);
  const Config config = optimizers::serialize(*both);
  EXPECT_EQ(config["module"], Config("keras.optimizers"));
  EXPECT_EQ(config["class_name"], Config("MultiOptimizer"));
  EXPECT_EQ(config["config"]["name"], Config("multi_optimizer"));
  EXPECT_EQ(config["config"]["loss_scale_factor"], Config(2.0));
  const Config& map = config["config"]["optimizer_map"];
  EXPECT_EQ(map["class_name"], Config("OptimizerMap"));
  EXPECT_EQ(map["config"]["default_optimizer"]["class_name"], Config("SGD"));
  EXPECT_EQ(map["config"]["optimizer_map"]["deep/.*"]["class_name"], Config("Adam"));
  const OptimizerHandle same = optimizers::deserialize(config);
  EXPECT_EQ(to_json(optimizers::serialize(*same)), to_json(config));
  EXPECT_EQ(same->optimizer_of(variable("deep/w")).class_name(), "Adam");
}

TEST(MultiOptimizerTest, RejectsInvalidOptions) {
  const optimizers::SGD sgd({});
  const auto map_of = [&](OptimizerMap::Entries entries) { OptimizerMap(sgd, std::move(entries)); };
  EXPECT_THAT(message_of<ValueError>([] { optimizers::MultiOptimizer({}); }),
              HasSubstr("optimizer_map is missing"));
  EXPECT_THAT(message_of<ValueError>([&] { map_of({{"(", sgd}}); }),
              HasSubstr("'(' is not a regular expression"));
  EXPECT_THAT(message_of<ValueError>([&] { map_of({{"a", sgd}, {"a", sgd}}); }),
              HasSubstr("the key 'a' is there twice"));
  EXPECT_THAT(message_of<ValueError>([&] { map_of({{"a", sgd_and_adam()}}); }),
              HasSubstr("the optimizer of 'a' must not be a MultiOptimizer"));
  EXPECT_THAT(message_of<ValueError>([] {
                optimizers::MultiOptimizer(
                    {.optimizer_map = OptimizerMap(optimizers::SGD({.loss_scale_factor = 2.0}))});
              }),
              HasSubstr("loss_scale_factor of 'sgd' must be unset"));
  EXPECT_THROW(optimizers::get("MultiOptimizer"), ValueError);
}

}  // namespace keel::multi_optimizer_test
