#include <limits>

#include <gtest/gtest.h>

#include <keel/layers/callbacks/lambda_callback.h>
#include <keel/layers/callbacks/optimizer_callbacks.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

namespace keel::reduce_lr_on_plateau_test {

Sequential model_at(double rate) {
  const Sequential model({.layers = {layers::Dense({.units = 1})}});
  model->compile({.optimizer = optimizers::SGD({.learning_rate = rate}), .loss = "mse"});
  return model;
}

// Returns the learning rates of the epochs while "val" takes these values; the first rate is 1.
std::vector<double> rates(ReduceLROnPlateauOptions options, const std::vector<double>& values) {
  const Sequential model = model_at(1);
  options.monitor = "val";
  if (options.mode == "auto") options.mode = "min";
  const auto play = callbacks::Lambda(
      {.on_epoch_end = [&](int64_t epoch, Logs& logs) { logs["val"] = values[epoch]; }});
  const History history = model->fit(Tensor::zeros({1, 1}), Tensor::zeros({1}),
                                     {.epochs = static_cast<int64_t>(values.size()),
                                      .verbose = Verbose::kSilent,
                                      .callbacks = {play, callbacks::ReduceLROnPlateau(options)}});
  return history["learning_rate"];
}

using Rates = std::vector<double>;

TEST(ReduceLROnPlateauTest, LowersTheRateAfterPatienceEpochs) {
  EXPECT_EQ(rates({.factor = 0.5, .patience = 2}, {3, 2, 2, 2, 2, 2, 2}),
            (Rates{1, 1, 1, 1, 0.5, 0.5, 0.25}));
}

TEST(ReduceLROnPlateauTest, SmallChangesDoNotCount) {
  EXPECT_EQ(rates({.factor = 0.5, .patience = 1, .min_delta = 0.1}, {3, 2.95, 2.8, 2.75}),
            (Rates{1, 1, 0.5, 0.5}));
}

TEST(ReduceLROnPlateauTest, EpochsOfTheCooldownDoNotCount) {
  EXPECT_EQ(rates({.factor = 0.5, .patience = 1, .cooldown = 2}, {1, 1, 1, 1, 1, 1}),
            (Rates{1, 1, 0.5, 0.5, 0.25, 0.25}));
}

TEST(ReduceLROnPlateauTest, TheRateStopsAtItsMinimum) {
  EXPECT_EQ(rates({.factor = 0.5, .patience = 1, .min_lr = 0.375}, {1, 1, 1, 1, 1}),
            (Rates{1, 1, 0.5, 0.375, 0.375}));
}

TEST(ReduceLROnPlateauTest, ModeSelectsTheDirection) {
  EXPECT_EQ(rates({.factor = 0.5, .patience = 1, .mode = "max"}, {1, 2, 3, 2, 2}),
            (Rates{1, 1, 1, 1, 0.5}));
}

TEST(ReduceLROnPlateauTest, NaNIsNoImprovement) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(rates({.factor = 0.5, .patience = 2}, {kNaN, kNaN, 1, 1}), (Rates{1, 1, 0.5, 0.5}));
}

TEST(ReduceLROnPlateauTest, OptionsOutOfRangeAreRejected) {
  EXPECT_THROW(callbacks::ReduceLROnPlateau({.factor = 1}), ValueError);
  EXPECT_THROW(callbacks::ReduceLROnPlateau({.factor = 0}), ValueError);
  EXPECT_THROW(callbacks::ReduceLROnPlateau({.patience = -1}), ValueError);
  EXPECT_THROW(callbacks::ReduceLROnPlateau({.cooldown = -1}), ValueError);
  EXPECT_THROW(callbacks::ReduceLROnPlateau({.mode = "best"}), ValueError);
}

TEST(ReduceLROnPlateauTest, MissingValuesAreRejectedExceptOfRareValidations) {
  const Sequential model = model_at(1);
  const Tensor x = Tensor::zeros({1, 1});
  FitOptions options = {
      .epochs = 2, .verbose = Verbose::kSilent, .callbacks = {callbacks::ReduceLROnPlateau({})}};
  EXPECT_THROW(model->fit(x, x, options), ValueError);
  options.validation_data = {x, x};
  options.validation_freq = 2;
  EXPECT_NO_THROW(model->fit(x, x, options));
}

TEST(ReduceLROnPlateauTest, SchedulesAreRejected) {
  const Sequential model = model_at(1);
  model->compile({.optimizer = optimizers::SGD(
                      {.learning_rate = optimizers::schedules::ExponentialDecay(
                           {.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 0.5})}),
                  .loss = "mse"});
  const Tensor x = Tensor::zeros({1, 1});
  const auto reduce = callbacks::ReduceLROnPlateau({.monitor = "loss", .patience = 0});
  EXPECT_THROW(model->fit(x, x, {.epochs = 3, .verbose = Verbose::kSilent, .callbacks = {reduce}}),
               RuntimeError);
}

TEST(ReduceLROnPlateauTest, AnIncompleteStateIsRejected) {
  EXPECT_THROW(callbacks::ReduceLROnPlateau({})->set_state({}), ValueError);
}

}  // namespace keel::reduce_lr_on_plateau_test
