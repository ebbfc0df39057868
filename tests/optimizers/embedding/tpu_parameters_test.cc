#include <keel/optimizers/embedding/tpu_parameters.h>

#include <gtest/gtest.h>

#include <keel/distribute/embedding/row_update.h>
#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>

#include "tests/support/optimizers.h"

namespace keel::tpu_parameters_test {

using testing_support::expect_invalid;

using Names = std::vector<std::string>;

// The state must be that of V1 parameters, with these slots and these suffixes of their variables.
void expect_slots(const EmbeddingOptimizer& t, const Names& slots, const Names& suffixes,
                  const std::vector<double>& initial) {
  EXPECT_TRUE(t->v1_parameters);
  EXPECT_EQ(t->v1_slot_suffixes, suffixes) << t->class_name;
  Names names;
  std::vector<double> starts;
  for (const Slot& slot : t->rule->slots()) {
    names.push_back(slot.name);
    starts.push_back(slot.initial);
  }
  EXPECT_EQ(names, slots) << t->class_name;
  EXPECT_EQ(starts, initial) << t->class_name;
}

TEST(TpuParametersTest, SlotsAndTheirVariablesHaveTheNamesOfV1) {
  expect_slots(tpu::StochasticGradientDescentParameters{.learning_rate = 1}, {}, {}, {});
  expect_slots(tpu::AdagradParameters{.learning_rate = 1}, {"accumulators"}, {"Adagrad"}, {0.1});
  expect_slots(tpu::AdamParameters{.learning_rate = 1}, {"momenta", "velocities"},
               {"Adam/m", "Adam/v"}, {0, 0});
  expect_slots(tpu::FtrlParameters{.learning_rate = 1, .initial_accumulator_value = 0.5},
               {"accumulators", "linears"}, {"Ftrl", "Ftrl_1"}, {0.5, 0});
  expect_slots(tpu::ProximalAdagradParameters{.learning_rate = 1}, {"accumulators"},
               {"ProximalAdagrad"}, {0.1});
  expect_slots(tpu::ProximalYogiParameters{}, {"v", "m"}, {"ProximalYogi", "ProximalYogi_1"},
               {1e-6, 0});
  expect_slots(tpu::MomentumParameters{.learning_rate = 1, .momentum = 0.5}, {"momenta"},
               {"Momentum"}, {0});
  expect_slots(
      tpu::RMSPropParameters{.learning_rate = 1, .rho = 0.1, .momentum = 0.1, .epsilon = 0.1},
      {"ms", "mom"}, {"RMSProp/ms", "RMSProp/mom"}, {0, 0});
  expect_slots(
      tpu::FrequencyEstimatorParameters{
          .tau = 0.1, .max_delta = 1, .outlier_threshold = 1, .weight_exponent = 1},
      {"last_hit_step"}, {"FrequencyEstimator"}, {0});
}

TEST(TpuParametersTest, RequiredParametersMustBeSet) {
  expect_invalid(tpu::StochasticGradientDescentParameters{});
  expect_invalid(tpu::AdagradParameters{});
  expect_invalid(tpu::AdamParameters{});
  expect_invalid(tpu::FtrlParameters{});
  expect_invalid(tpu::ProximalAdagradParameters{});
  expect_invalid(tpu::MomentumParameters{.momentum = 0.9});
  expect_invalid(tpu::MomentumParameters{.learning_rate = 0.1});
  expect_invalid(tpu::RMSPropParameters{.learning_rate = 0.1, .momentum = 0.1, .epsilon = 0.1});
  expect_invalid(tpu::RMSPropParameters{.learning_rate = 0.1, .rho = 0.1, .epsilon = 0.1});
  expect_invalid(tpu::RMSPropParameters{.learning_rate = 0.1, .rho = 0.1, .momentum = 0.1});
  expect_invalid(tpu::FrequencyEstimatorParameters{.tau = 0.1});
  EXPECT_EQ(EmbeddingOptimizer(tpu::ProximalYogiParameters{}).current_learning_rate(), 0.01);
  EXPECT_EQ(
      EmbeddingOptimizer(tpu::AdagradParameters{.learning_rate = 0.5}).current_learning_rate(),
      0.5);
}

TEST(TpuParametersTest, RejectsParametersOutOfRange) {
  expect_invalid(tpu::AdagradParameters{.learning_rate = 1, .initial_accumulator = 0});
  expect_invalid(tpu::AdamParameters{.learning_rate = 1, .beta1 = 1});
  expect_invalid(tpu::AdamParameters{.learning_rate = 1, .beta2 = -0.5});
  expect_invalid(tpu::AdamParameters{.learning_rate = 1, .epsilon = 0});
  expect_invalid(tpu::AdamParameters{
      .learning_rate = 1, .lazy_adam = false, .use_gradient_accumulation = false});
  expect_invalid(tpu::FtrlParameters{.learning_rate = 1, .learning_rate_power = 0.5});
  expect_invalid(tpu::FtrlParameters{.learning_rate = 1, .initial_accumulator_value = -0.5});
  expect_invalid(tpu::FtrlParameters{.learning_rate = 1, .l1_regularization_strength = -1});
  expect_invalid(tpu::FtrlParameters{.learning_rate = 1, .l2_regularization_strength = -1});
  expect_invalid(tpu::ProximalAdagradParameters{.learning_rate = 1, .initial_accumulator = 0});
  expect_invalid(
      tpu::ProximalAdagradParameters{.learning_rate = 1, .l1_regularization_strength = -1});
  expect_invalid(
      tpu::ProximalAdagradParameters{.learning_rate = 1, .l2_regularization_strength = -1});
  expect_invalid(tpu::ProximalYogiParameters{.beta1 = 1});
  expect_invalid(tpu::ProximalYogiParameters{.beta2 = 1});
  expect_invalid(tpu::ProximalYogiParameters{.epsilon = 0});
  expect_invalid(tpu::ProximalYogiParameters{.l1_regularization_strength = -1});
  expect_invalid(tpu::ProximalYogiParameters{.l2_regularization_strength = -1});
}

TEST(TpuParametersTest, ClippingGradientsNeedsAccumulation) {
  expect_invalid(tpu::AdagradParameters{
      .learning_rate = 1, .use_gradient_accumulation = false, .clip_gradient_min = -1});
  expect_invalid(tpu::RMSPropParameters{.learning_rate = 1,
                                        .rho = 0.1,
                                        .momentum = 0.1,
                                        .epsilon = 0.1,
                                        .use_gradient_accumulation = false,
                                        .clip_gradient_max = 0});
  expect_invalid(
      tpu::AdagradParameters{.learning_rate = 1, .clip_gradient_min = 1, .clip_gradient_max = -1});
}

TEST(TpuParametersTest, SgdAccumulatesOnlyToClip) {
  tpu::StochasticGradientDescentParameters o = {.learning_rate = 1};
  EXPECT_FALSE(EmbeddingOptimizer(o)->use_gradient_accumulation);
  o.clip_gradient_min = 0;
  EXPECT_TRUE(EmbeddingOptimizer(o)->use_gradient_accumulation);
}

TEST(TpuParametersTest, CommonParametersReachTheState) {
  const EmbeddingOptimizer t =
      tpu::AdamParameters{.learning_rate = 0.5,
                          .lazy_adam = false,
                          .clip_weight_min = -2,
                          .clip_weight_max = 2,
                          .weight_decay_factor = 0.25,
                          .multiply_weight_decay_factor_by_learning_rate = true,
                          .clip_gradient_min = -1,
                          .clip_gradient_max = 1};
  const distribute::RowUpdate update = row_update(*t);
  EXPECT_EQ(update.rule, t->rule);
  EXPECT_EQ(update.clip_gradient_min, -1);
  EXPECT_EQ(update.clip_gradient_max, 1);
  EXPECT_EQ(update.clip_weight_min, -2);
  EXPECT_EQ(update.clip_weight_max, 2);
  EXPECT_EQ(update.weight_decay_factor, 0.25);
  EXPECT_TRUE(update.multiply_weight_decay_factor_by_learning_rate);
  EXPECT_TRUE(update.use_gradient_accumulation);
  EXPECT_FALSE(update.lazy);
  EXPECT_EQ(dynamic_cast<const AdamRule&>(*t->rule->base).options.epsilon, 1e-8);
}

TEST(TpuParametersTest, AreNotEqualToTheOptimizersOfTheSameRule) {
  EXPECT_NE(EmbeddingOptimizer(tpu::AdagradParameters{.learning_rate = 0.001}),
            EmbeddingOptimizer(tpu::Adagrad{}));
  EXPECT_EQ(EmbeddingOptimizer(tpu::AdagradParameters{.learning_rate = 0.001}),
            EmbeddingOptimizer(tpu::AdagradParameters{.learning_rate = 0.001}));
}

}  // namespace keel::tpu_parameters_test
