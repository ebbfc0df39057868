#include <keel/optimizers/embedding/tpu_optimizers.h>

#include <gtest/gtest.h>

#include <keel/framework/kernels/update_rules/embedding_update_rules.h>
#include <keel/optimizers/embedding/embedding_optimizer.h>
#include <keel/optimizers/embedding/sparse_core_optimizers.h>
#include <keel/optimizers/embedding/tpu_parameters.h>
#include <keel/optimizers/schedules/schedules.h>

#include "tests/support/errors.h"
#include "tests/support/optimizers.h"

namespace keel::tpu_optimizers_test {

using testing_support::expect_invalid;
using testing_support::message_of;

TEST(TpuOptimizersTest, RejectsParametersOutOfRange) {
  expect_invalid(tpu::Adagrad{.initial_accumulator_value = 0});
  expect_invalid(tpu::Adam{.beta_1 = 1});
  expect_invalid(tpu::Adam{.beta_2 = -0.1});
  expect_invalid(tpu::Adam{.epsilon = 0});
  expect_invalid(tpu::Adam{.lazy_adam = false, .use_gradient_accumulation = false});
  expect_invalid(tpu::FTRL{.learning_rate_power = 0.5});
  expect_invalid(tpu::FTRL{.l1_regularization_strength = -1});
  expect_invalid(tpu::FTRL{.l2_regularization_strength = -1});
  expect_invalid(tpu::FTRL{.initial_accumulator_value = 0});
  expect_invalid(tpu::SGD{.use_gradient_accumulation = false, .clipvalue = 0});
  expect_invalid(tpu::SGD{.clip_weight_min = 1, .clip_weight_max = 0});
  expect_invalid(tpu::SGD{.learning_rate = optimizers::schedules::CosineDecay({.decay_steps = 1})});
}

template <class Options>
void expect_clipping_refused() {
  EXPECT_THROW(EmbeddingOptimizer(Options{.use_gradient_accumulation = false, .clipvalue = 0.0}),
               ValueError);
  EXPECT_THROW(EmbeddingOptimizer(
                   Options{.use_gradient_accumulation = false, .clipvalue = {std::nullopt, 1.0}}),
               ValueError);
  EXPECT_NO_THROW(EmbeddingOptimizer(Options{.use_gradient_accumulation = false}));
  EXPECT_NO_THROW(EmbeddingOptimizer(Options{.clipvalue = 0.0}));
}

TEST(SpecRowsA, A12_ClipvalueIsANumberAPairOrUnset) {
  const auto bounds = [](const ClipValue& c) {
    const EmbeddingOptimizer t = tpu::SGD{.clipvalue = c};
    return std::pair(t->clip_gradient_min, t->clip_gradient_max);
  };
  using Bounds = std::pair<std::optional<double>, std::optional<double>>;
  EXPECT_EQ(bounds(1.0), Bounds(-1, 1));
  EXPECT_EQ(bounds({-1, 1}), Bounds(-1, 1));
  EXPECT_EQ(bounds({std::nullopt, 1}), Bounds(std::nullopt, 1));
  EXPECT_EQ(bounds({}), Bounds());
}

TEST(SpecRowsA, A13_ClippingGradientsNeedsAccumulation) {
  expect_clipping_refused<tpu::Adagrad>();
  expect_clipping_refused<tpu::Adam>();
  expect_clipping_refused<tpu::FTRL>();
  expect_clipping_refused<tpu::SGD>();
  expect_clipping_refused<tpu::AdagradMomentum>();
}

TEST(SpecRowsA, A14_RangesOfAdam) {
  expect_invalid(tpu::Adam{.beta_1 = 1.0});
  expect_invalid(tpu::Adam{.beta_2 = -0.1});
  expect_invalid(tpu::Adam{.epsilon = 0});
  expect_invalid(tpu::Adam{.lazy_adam = false, .use_gradient_accumulation = false});
  EXPECT_NO_THROW(EmbeddingOptimizer(tpu::Adam{.beta_1 = 0}));
}

TEST(SpecRowsA, A15_PositiveParameters) {
  expect_invalid(tpu::Adagrad{.initial_accumulator_value = 0});
  expect_invalid(tpu::FTRL{.initial_accumulator_value = 0});
  expect_invalid(tpu::AdagradMomentum{.epsilon = 0});
  expect_invalid(tpu::AdagradMomentum{.exponent = 0});
  EXPECT_NO_THROW(EmbeddingOptimizer(
      tpu::FtrlParameters{.learning_rate = 0.1, .initial_accumulator_value = 0}));
}

// A factory that is not callable does not compile; an empty function counts as unset.
TEST(SpecRowsA, A20_TheSlotFactoryMustBeCallable) {
  static_assert(!std::is_convertible_v<int, SlotVariableCreationFn>);
  static_assert(!std::is_convertible_v<const char*, SlotVariableCreationFn>);
  const std::function<SlotVariables(const TableVariable&, const std::vector<std::string>&,
                                    const std::vector<Initializer>&)>
      empty;
  EXPECT_EQ(EmbeddingOptimizer(tpu::Adam{.slot_variable_creation_fn = empty}),
            EmbeddingOptimizer(tpu::Adam{}));
}

TEST(TpuOptimizersTest, LaPropAndF2ARejectParametersOutOfRange) {
  expect_invalid(tpu::LaProp{.b1 = 1});
  expect_invalid(tpu::LaProp{.b2 = -0.1});
  expect_invalid(tpu::LaProp{.eps = -1});
  expect_invalid(tpu::LaProp{.initial_slot_value = -1});
  expect_invalid(
      tpu::LaProp{.global_step = optimizers::schedules::CosineDecay({.decay_steps = 1})});
  expect_invalid(tpu::F2A{});  // without a global_step
  expect_invalid(tpu::F2A{.rho = -1, .global_step = 1.0});
  expect_invalid(tpu::F2A{.initial_accumulator_value = 0, .global_step = 1.0});
  expect_invalid(tpu::F2A{.initial_local_step_value = -1, .global_step = 1.0});
  expect_invalid(tpu::F2A{.l1_regularization_strength = -1, .global_step = 1.0});
  expect_invalid(tpu::F2A{.l2_regularization_strength = -1, .global_step = 1.0});
  expect_invalid(tpu::F2A{.max_lr_multiplier = 0, .global_step = 1.0});
}

TEST(TpuOptimizersTest, ErrorsNameTheParameterAndItsValue) {
  const auto message = [](const auto& options) -> std::string {
    return message_of<ValueError>([&] { const EmbeddingOptimizer t = options; });
  };
  EXPECT_EQ(message(tpu::Adam{.beta_2 = 1.5}), "Adam: beta_2 must be in [0, 1), received 1.5");
  EXPECT_EQ(message(tpu::AdagradMomentum{.exponent = -2}),
            "AdagradMomentum: exponent must be positive, received -2");
  EXPECT_EQ(message(tpu::FTRL{.l1_regularization_strength = -3}),
            "FTRL: l1_regularization_strength must not be negative, received -3");
  EXPECT_EQ(message(tpu::SGD{.clip_weight_min = 1, .clip_weight_max = 0}),
            "SGD: clip_weight_min must not exceed clip_weight_max, received 1 and 0");
}

TEST(TpuOptimizersTest, AdagradMomentumStartsItsSlotsAtZero) {
  const EmbeddingOptimizer t = tpu::AdagradMomentum{};
  EXPECT_EQ(t->class_name, "AdagradMomentum");
  const std::vector<Slot> slots = t->rule->slots();
  ASSERT_EQ(slots.size(), 2U);
  EXPECT_EQ(slots[0].name, "accumulators");
  EXPECT_EQ(slots[0].initial, 0);
  EXPECT_EQ(slots[1].name, "momenta");
  EXPECT_EQ(t.current_learning_rate(), 0.001);
}

TEST(TpuOptimizersTest, OptionsReachTheState) {
  const EmbeddingOptimizer packed = tpu::SGD{.low_dimensional_packing_status = true};
  EXPECT_TRUE(packed->low_dimensional_packing_status);
  const EmbeddingOptimizer ftrl = tpu::FTRL{.beta = 0.5, .allow_zero_accumulator = true};
  const auto& rule = dynamic_cast<const FtrlRule&>(*ftrl->rule->base).options;
  EXPECT_TRUE(rule.allow_zero_accumulator);
  EXPECT_EQ(rule.beta, 0.5);
  EXPECT_FALSE(ftrl->v1_parameters);
  EXPECT_FALSE(ftrl->custom);
}

TEST(TpuOptimizersTest, ACustomOptimizerNeedsAComputationAndAnInitializerForEachSlot) {
  const CustomComputation nothing = [](const CustomRow&) {};
  expect_invalid(tpu::CustomOptimizer{});
  expect_invalid(tpu::CustomOptimizer{.custom_computation = nothing, .slot_names = {"a"}});
  expect_invalid(tpu::CustomOptimizer{.custom_computation = nothing,
                                      .slot_initializers = {initializers::zeros()}});
  const LearningRate schedule = optimizers::schedules::CosineDecay({.decay_steps = 1});
  expect_invalid(tpu::CustomOptimizer{.custom_computation = nothing, .learning_rate = schedule});
  expect_invalid(
      tpu::CustomOptimizer{.custom_computation = nothing, .hyperparameters = {schedule}});
  const EmbeddingOptimizer t = tpu::CustomOptimizer{.custom_computation = nothing};
  EXPECT_TRUE(t->custom);
  EXPECT_EQ(t.current_learning_rate(), 0.01);
  EXPECT_TRUE(t.current_hyperparameters().empty());
  EXPECT_THROW(EmbeddingOptimizer().current_hyperparameters(), RuntimeError);
}

}  // namespace keel::tpu_optimizers_test
