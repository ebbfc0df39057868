// Tests layers/callbacks/internal/monitor.cc.
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/callbacks/lambda_callback.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/metrics.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"

namespace keel::early_stopping_test {

using testing::HasSubstr;
using testing_support::message_of;

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A model whose bias is 1 after the first epoch, 2 after the second, and so on.
struct Counter {
  Counter() : bias(layers::Dense({.units = 1, .kernel_initializer = "zeros"})), model({}) {
    model->add(bias);
    model->compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mse"});
  }
  // Runs fit while "val" takes these values; the history has the epochs that ran.
  History run(const callbacks::EarlyStopping& stopping, const std::vector<double>& values,
              const std::vector<CallbackHandle>& more = {}) {
    const auto play = callbacks::Lambda({.on_epoch_end = [&](int64_t epoch, Logs& logs) {
      logs["val"] = values[epoch];
      bias->bias().assign(Tensor::from<float>({static_cast<float>(epoch + 1)}, {1}));
    }});
    std::vector<CallbackHandle> callbacks = {play, stopping};
    callbacks.insert(callbacks.end(), more.begin(), more.end());
    return model->fit(Tensor::zeros({1, 1}), Tensor::zeros({1}),
                      {.epochs = static_cast<int64_t>(values.size()),
                       .verbose = Verbose::kSilent,
                       .callbacks = callbacks});
  }
  float value() const { return bias->bias().read().item<float>(); }

  layers::Dense bias;
  Sequential model;
};

int64_t epochs_of(EarlyStoppingOptions options, const std::vector<double>& values) {
  Counter counter;
  if (options.monitor == "val" && options.mode == "auto") options.mode = "min";
  return static_cast<int64_t>(
      counter.run(callbacks::EarlyStopping(options), values).epochs().size());
}

TEST(EarlyStoppingTest, StopsAfterPatienceEpochsWithoutGettingBetter) {
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 2}, {3, 2, 2.5, 2.2, 1, 1}), 4);
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 3}, {3, 2, 2.5, 2.2, 1, 1}), 6);
}

TEST(EarlyStoppingTest, WithoutPatienceTheFirstWorseEpochIsTheLast) {
  EXPECT_EQ(epochs_of({.monitor = "val"}, {3, 2, 2.5, 1}), 3);
}

TEST(EarlyStoppingTest, SmallChangesDoNotCount) {
  EXPECT_EQ(epochs_of({.monitor = "val", .min_delta = 0.5}, {3, 2.9, 1}), 2);
  EXPECT_EQ(epochs_of({.monitor = "val", .min_delta = -0.5}, {3, 2.4, 2}), 3);
}

TEST(EarlyStoppingTest, ModeSelectsTheDirection) {
  EXPECT_EQ(epochs_of({.monitor = "val", .mode = "max"}, {1, 2, 3, 2, 5}), 4);
  EXPECT_EQ(epochs_of({.monitor = "val", .mode = "min"}, {1, 2, 3, 2, 5}), 2);
}

// Returns the number of epochs that run while `monitor` takes the values 0, 0.1, 0.2, 0.3.
size_t epochs_of_rise(const std::string& monitor, const MetricsArgument& metrics) {
  const Sequential model({.layers = {layers::Dense({.units = 1, .activation = "sigmoid"})}});
  model->compile({.optimizer = optimizers::SGD({}), .loss = "mse", .metrics = metrics});
  const callbacks::EarlyStopping stopping({.monitor = monitor});
  const auto play = callbacks::Lambda(
      {.on_epoch_end = [&](int64_t epoch, Logs& logs) { logs[monitor] = 0.1 * epoch; }});
  return model
      ->fit(Tensor::zeros({1, 1}), Tensor::zeros({1, 1}),
            {.epochs = 4, .verbose = Verbose::kSilent, .callbacks = {play, stopping}})
      .epochs()
      .size();
}

TEST(EarlyStoppingTest, AutoUsesTheDirectionOfTheMetric) {
  EXPECT_EQ(epochs_of_rise("val_auc", {"auc"}), 4u);
  EXPECT_EQ(epochs_of_rise("auc_1", {"auc", metrics::AUC({.num_thresholds = 50})}), 4u);
  EXPECT_EQ(epochs_of_rise("click_auc", {"auc"}), 4u);
  EXPECT_EQ(epochs_of_rise("hits", {metrics::BinaryAccuracy({.name = "hits"})}), 4u);
  EXPECT_EQ(epochs_of_rise("val_gauc_error", {metrics::MeanAbsoluteError({.name = "gauc_error"})}),
            2u);
  EXPECT_EQ(epochs_of_rise("normalized_entropy", {metrics::NormalizedEntropy({})}), 2u);
  EXPECT_EQ(epochs_of_rise("val_loss", {}), 2u);
  EXPECT_EQ(epochs_of_rise("click_loss", {"auc"}), 2u);
}

TEST(EarlyStoppingTest, AutoRejectsMetricsWithoutDirection) {
  for (const MetricsArgument& metrics :
       std::vector<MetricsArgument>{{}, {metrics::Calibration({.name = "my_auc"})}}) {
    const std::string text = message_of<ValueError>([&] { epochs_of_rise("val_my_auc", metrics); });
    EXPECT_THAT(text, HasSubstr("'val_my_auc'"));
    EXPECT_THAT(text, HasSubstr("mode=\"min\" or mode=\"max\""));
  }
}

TEST(EarlyStoppingTest, RankingMetricsAreMaximized) {
  EXPECT_EQ(metrics::NDCG({})->direction(), Metric::Direction::kUp);
  EXPECT_EQ(metrics::PrecisionAtK({})->direction(), Metric::Direction::kUp);
  EXPECT_EQ(metrics::GAUC({})->direction(), Metric::Direction::kUp);
  EXPECT_EQ(metrics::Recall({})->direction(), Metric::Direction::kUp);
  EXPECT_EQ(metrics::FalsePositives({})->direction(), Metric::Direction::kNeither);
}

TEST(EarlyStoppingTest, ValuesMustBeatTheBaseline) {
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 2, .baseline = 1}, {3, 4, 4, 0.5}), 2);
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 2, .baseline = 5}, {3, 4, 4, 0.5}), 3);
}

TEST(EarlyStoppingTest, EpochsBeforeTheStartAreIgnored) {
  EXPECT_EQ(epochs_of({.monitor = "val", .start_from_epoch = 3}, {1, 2, 3, 4, 5, 6}), 5);
}

TEST(EarlyStoppingTest, NaNIsNoImprovement) {
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 1}, {kNaN, kNaN, 1}), 2);
}

TEST(EarlyStoppingTest, BestWeightsAreRestored) {
  Counter counter;
  const callbacks::EarlyStopping stopping(
      {.monitor = "val", .patience = 2, .mode = "min", .restore_best_weights = true});
  counter.run(stopping, {3, 1, 2, 2, 2});
  EXPECT_EQ(counter.value(), 2);
  EXPECT_EQ(stopping->best_epoch(), 1);
  EXPECT_EQ(stopping->stopped_epoch(), 3);
}

TEST(EarlyStoppingTest, BestWeightsAreRestoredWithoutAStop) {
  Counter counter;
  const callbacks::EarlyStopping stopping(
      {.monitor = "val", .patience = 9, .mode = "min", .restore_best_weights = true});
  counter.run(stopping, {3, 1, 2});
  EXPECT_EQ(counter.value(), 2);
  EXPECT_FALSE(stopping->stopped_epoch());
}

TEST(EarlyStoppingTest, TheBestEpochIsKnownWithoutRestoringWeights) {
  Counter counter;
  const callbacks::EarlyStopping stopping({.monitor = "val", .patience = 9, .mode = "min"});
  counter.run(stopping, {3, 1, 2, 2});
  EXPECT_EQ(stopping->best_epoch(), 1);
  const callbacks::EarlyStopping late(
      {.monitor = "val", .patience = 9, .mode = "min", .start_from_epoch = 2});
  counter.run(late, {1, 1, kNaN, kNaN});
  EXPECT_EQ(late->best_epoch(), 2);
}

// Restores the state of another callback, as a run resumed from a backup does.
CallbackHandle taking_up(const callbacks::EarlyStopping& stopping, const Callback::State& state) {
  return callbacks::Lambda({.on_epoch_begin = [=](int64_t epoch) {
    if (epoch == 0) stopping->set_state(state);
  }});
}

TEST(EarlyStoppingTest, AResumedRunRestoresBestWeights) {
  for (const bool before : {false, true}) {
    EarlyStoppingOptions options = {
        .monitor = "val", .patience = 9, .mode = "min", .restore_best_weights = before};
    const callbacks::EarlyStopping first(options);
    Counter().run(first, {3, 1});
    options.restore_best_weights = !before;
    for (const double next : {2.0, 0.5}) {
      Counter counter;
      const callbacks::EarlyStopping second(options);
      counter.run(second, {4, next, 4}, {taking_up(second, first->state())});
      EXPECT_EQ(counter.value(), !before && next < 1 ? 2 : 3) << before << next;
    }
  }
}

TEST(EarlyStoppingTest, AnIncompleteStateIsRejected) {
  EXPECT_THROW(callbacks::EarlyStopping({})->set_state({}), ValueError);
}

TEST(EarlyStoppingTest, WeightsAreKeptUnlessRestoreIsRequested) {
  Counter counter;
  counter.run(callbacks::EarlyStopping({.monitor = "val", .patience = 1, .mode = "min"}),
              {1, 2, 2});
  EXPECT_EQ(counter.value(), 2);
}

TEST(EarlyStoppingTest, UnknownMonitorsAreRejected) {
  EXPECT_THAT(message_of<ValueError>([&] { epochs_of({.monitor = "val_loss"}, {1, 2}); }),
              HasSubstr("loss, val"));
}

TEST(EarlyStoppingTest, InvalidOptionsAreRejected) {
  EXPECT_THROW(callbacks::EarlyStopping({.mode = "up"}), ValueError);
  EXPECT_THROW(callbacks::EarlyStopping({.patience = -1}), ValueError);
}

}  // namespace keel::early_stopping_test
