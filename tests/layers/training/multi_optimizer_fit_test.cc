// Tests fit() and callbacks with several optimizers, and
// layers/callbacks/learning_rate_scheduler.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/callbacks/optimizer_callbacks.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/multi_optimizer.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::multi_optimizer_fit_test {

using testing::HasSubstr;
using testing_support::message_of;
using testing_support::normal;

// A kernel that SGD trains and a bias that another optimizer trains.
Sequential compiled(const OptimizerHandle& of_bias) {
  Sequential model({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}}),
                               layers::Dense({.units = 1, .name = "one"})}});
  model->weights()[0].assign(normal({3, 1}, 1));
  model->compile({.optimizer = optimizers::MultiOptimizer(
                      {.optimizer_map = OptimizerMap(optimizers::SGD({.learning_rate = 0.1}),
                                                     {{".*/bias", of_bias}})}),
                  .loss = "mse"});
  return model;
}

void fit(const Sequential& model, int64_t epochs, const std::vector<CallbackHandle>& callbacks) {
  model->fit(normal({8, 3}, 2), normal({8, 1}, 3),
             {.epochs = epochs,
              .batch_size = 4,
              .shuffle = false,
              .verbose = Verbose::kSilent,
              .callbacks = callbacks});
}

std::vector<float> values_of(const Sequential& model, size_t weight) {
  return model->weights()[weight].read().to_vector<float>();
}

TEST(MultiOptimizerFitTest, FitTrainsEachVariableByItsOptimizer) {
  const Sequential both = compiled(optimizers::SGD({.learning_rate = 0}));
  const Sequential kernel_only = compiled(optimizers::Adam({.learning_rate = 0}));
  for (const Sequential& model : {both, kernel_only}) fit(model, 3, {});
  EXPECT_EQ(both->optimizer()->iterations(), 6);
  EXPECT_EQ(values_of(both, 1), std::vector<float>{0});
  EXPECT_EQ(values_of(both, 0), values_of(kernel_only, 0));
}

TEST(MultiOptimizerFitTest, CallbacksOfTheLearningRateAreRejectedBeforeTheFirstStep) {
  const Sequential model = compiled(optimizers::Adam({}));
  const callbacks::LearningRateScheduler scheduler(
      {.schedule = [](int64_t, double rate) { return rate / 2; }});
  const callbacks::ReduceLROnPlateau plateau({.monitor = "loss"});
  for (const CallbackHandle& callback : {CallbackHandle(scheduler), CallbackHandle(plateau)}) {
    EXPECT_THAT(message_of<RuntimeError>([&] { fit(model, 1, {callback}); }),
                HasSubstr("MultiOptimizer.learning_rate: each optimizer has its own"));
  }
  EXPECT_EQ(model->optimizer()->iterations(), 0);
}

// With a momentum of 1 the average keeps the bias of the first step.
TEST(MultiOptimizerFitTest, SwapEMAWeightsSwapsTheVariablesThatHaveAverages) {
  const Sequential model =
      compiled(optimizers::SGD({.learning_rate = 0.1, .use_ema = true, .ema_momentum = 1}));
  const Sequential same = compiled(optimizers::SGD({.learning_rate = 0.1}));
  const Sequential one_step = compiled(optimizers::SGD({.learning_rate = 0.1}));
  fit(model, 2, {callbacks::SwapEMAWeights({})});
  fit(same, 2, {});
  one_step->train_on_batch(ops::slice(normal({8, 3}, 2), 0, 0, 4),
                           ops::slice(normal({8, 1}, 3), 0, 0, 4));
  EXPECT_EQ(values_of(model, 0), values_of(same, 0));
  EXPECT_EQ(values_of(model, 1), values_of(one_step, 1));
  EXPECT_NE(values_of(model, 1), values_of(same, 1));
}

}  // namespace keel::multi_optimizer_fit_test
