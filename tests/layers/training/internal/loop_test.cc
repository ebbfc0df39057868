#include <keel/layers/training/internal/loop.h>

#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/callbacks.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/metrics.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"

namespace keel::loop_test {

using testing::HasSubstr;
using testing::StartsWith;
using testing_support::message_of;

Tensor ones(const Shape& shape) { return Tensor::full<float>(shape, 1); }

Sequential model_with(const OptimizerArgument& optimizer, const MetricsArgument& metrics = {}) {
  Sequential model({.layers = {layers::Dense({.units = 1, .kernel_initializer = "zeros"})}});
  model->compile({.optimizer = optimizer, .loss = "mse", .metrics = metrics});
  return model;
}

TEST(LoopTest, FitKeepsItsConfigurationIfACallbackCompiles) {
  distribute::CPUStrategy cpu;
  distribute::TPUStrategy tpu({.num_cores = 2});
  for (distribute::Strategy* strategy : std::initializer_list<distribute::Strategy*>{&cpu, &tpu}) {
    const auto scope = strategy->scope();
    const auto first = optimizers::SGD({}), second = optimizers::SGD({});
    const Sequential model = model_with(first, {"mae"});
    const auto compile = callbacks::LambdaCallback({.on_train_batch_begin = [&](int64_t batch) {
      if (batch == 1) model->compile({.optimizer = second, .loss = "mae", .metrics = {"mse"}});
    }});
    const FitOptions options = {.epochs = 2, .batch_size = 2, .verbose = Verbose::kSilent};
    FitOptions compiling = options;
    compiling.callbacks = {compile};
    const History history = model->fit(ones({8, 1}), ones({8, 1}), compiling);
    EXPECT_EQ(history.names(), (std::vector<std::string>{"loss", "mae"}));
    EXPECT_EQ(first->iterations(), 8);
    EXPECT_EQ(second->iterations(), 0);
    EXPECT_EQ(model->optimizer(), second.shared());
    EXPECT_EQ(model->fit(ones({8, 1}), ones({8, 1}), options).names(),
              (std::vector<std::string>{"loss", "mse"}));
    EXPECT_EQ(second->iterations(), 8);
  }
}

TEST(LoopTest, EvaluateKeepsItsConfigurationIfACallbackCompiles) {
  const Sequential model = model_with(optimizers::SGD({}));
  const auto compile = callbacks::LambdaCallback(
      {.on_test_batch_begin = [&](int64_t) { model->compile({.loss = "mae"}); }});
  const Tensor twos = Tensor::full<float>({4, 1}, 2);
  const EvaluateOptions options = {
      .batch_size = 2, .verbose = Verbose::kSilent, .callbacks = {compile}};
  EXPECT_EQ(model->evaluate(twos, twos, options).at("loss"), 4);
  EXPECT_EQ(model->evaluate(twos, twos, {.verbose = Verbose::kSilent}).at("loss"), 2);
}

TEST(LoopTest, RejectsASecondThreadWhileOneTrains) {
  const Sequential model = model_with(optimizers::SGD({}));
  std::vector<std::string> errors;
  const auto other = callbacks::LambdaCallback({.on_train_batch_begin = [&](int64_t) {
    std::thread([&] {
      const auto attempt = [&](const auto& fn) {
        try {
          fn();
        } catch (const RuntimeError& error) {
          errors.emplace_back(error.what());
        }
      };
      attempt([&] { model->fit(ones({4, 1}), ones({4, 1}), {.verbose = Verbose::kSilent}); });
      attempt([&] { model->evaluate(ones({4, 1}), ones({4, 1}), {.verbose = Verbose::kSilent}); });
      attempt([&] { model->train_on_batch(ones({4, 1}), ones({4, 1})); });
    }).join();
  }});
  const FitOptions options = {.batch_size = 4, .verbose = Verbose::kSilent, .callbacks = {other}};
  model->fit(ones({4, 1}), ones({4, 1}), options);
  ASSERT_EQ(errors.size(), 3u);
  EXPECT_THAT(errors[0],
              StartsWith("Model.fit: another thread is training or evaluating this model"));
  EXPECT_THAT(errors[1], StartsWith("Model.evaluate: another thread"));
  EXPECT_EQ(model->optimizer()->iterations(), 1);
  // The run has ended, so another thread may train.
  std::thread([&] { model->train_on_batch(ones({4, 1}), ones({4, 1})); }).join();
  EXPECT_EQ(model->optimizer()->iterations(), 2);
}

TEST(LoopTest, RejectsFeaturesLabelsAndWeightsOfDifferentNumbersOfRows) {
  distribute::CPUStrategy cpu;
  const auto scope = cpu.scope();
  const Sequential model = model_with(optimizers::SGD({}));
  model->build(TensorSpec{.shape = {kUnknown, 1}});
  const auto error_of = [&](const Tensors& batch) -> std::string {
    return message_of<ValueError>(
        [&] { model->fit(data::Dataset::from_tensors(batch), {.verbose = Verbose::kSilent}); });
  };
  EXPECT_THAT(error_of(Tensors::tuple({ones({4, 1}), ones({1, 1})})),
              HasSubstr("same number of rows"));
  EXPECT_THAT(error_of(Tensors::tuple({ones({4, 1}), ones({4, 1}), ones({1})})), HasSubstr("'2'"));
  EXPECT_EQ(model->optimizer()->iterations(), 0);
}

TEST(LoopTest, ANestedRunUsesTheLatestConfiguration) {
  const Sequential model = model_with(optimizers::SGD({.learning_rate = 0}));
  const Tensor twos = Tensor::full<float>({4, 1}, 2);
  double inner = 0;
  const auto compile = callbacks::LambdaCallback({.on_epoch_begin = [&](int64_t) {
    model->compile({.loss = "mae"});
    inner = model->evaluate(twos, twos, {.verbose = Verbose::kSilent}).at("loss");
  }});
  const History history =
      model->fit(twos, twos, {.verbose = Verbose::kSilent, .callbacks = {compile}});
  EXPECT_EQ(inner, 2);
  EXPECT_EQ(history["loss"], std::vector<double>{4});
}

TEST(LoopTest, ZeroEpochsGiveAnEmptyHistory) {
  std::string seen;
  const auto note = callbacks::LambdaCallback({.on_epoch_begin = [&](int64_t) { seen += "e"; },
                                               .on_train_begin = [&] { seen += "t"; },
                                               .on_train_end =
                                                   [&](const Logs& logs) {
                                                     EXPECT_TRUE(logs.empty());
                                                     seen += "T";
                                                   }});
  for (const auto& [epochs, initial] :
       std::vector<std::pair<int64_t, int64_t>>{{0, 0}, {1, 1}, {2, 5}}) {
    const Sequential model = model_with(optimizers::SGD({.use_ema = true}));
    const History history = model->fit(ones({4, 1}), ones({4, 1}),
                                       {.epochs = epochs,
                                        .initial_epoch = initial,
                                        .verbose = Verbose::kSilent,
                                        .callbacks = {note},
                                        .validation_data = {ones({4, 1}), ones({4, 1})}});
    EXPECT_TRUE(history.epochs().empty());
    EXPECT_TRUE(history.names().empty());
    EXPECT_EQ(model->optimizer()->iterations(), 0);
  }
  EXPECT_EQ(seen, "tTtTtT");
}

TEST(LoopTest, OnTrainEndHasTheLogsOfTheLastEpoch) {
  const Sequential model = model_with(optimizers::SGD({}));
  Logs end;
  const auto note = callbacks::LambdaCallback({.on_train_end = [&](const Logs& l) { end = l; }});
  const History history = model->fit(ones({4, 1}), ones({4, 1}),
                                     {.epochs = 3,
                                      .verbose = Verbose::kSilent,
                                      .callbacks = {note},
                                      .validation_data = {ones({4, 1}), ones({4, 1})},
                                      .validation_freq = 2});
  EXPECT_EQ(end, (Logs{{"loss", history["loss"][2]}}));
}

TEST(LoopTest, ExpensiveMetricsAreOmittedFromBatchLogs) {
  const Sequential model =
      model_with(optimizers::SGD({}), {"mae", metrics::ExactAUC({.name = "area"})});
  int64_t batches = 0;
  Logs epoch, test;
  const auto look = [&](int64_t, const Logs& logs) {
    EXPECT_TRUE(logs.contains("mae"));
    EXPECT_FALSE(logs.contains("area"));
    ++batches;
  };
  const auto note =
      callbacks::LambdaCallback({.on_epoch_end = [&](int64_t, Logs& logs) { epoch = logs; },
                                 .on_train_batch_end = look,
                                 .on_test_end = [&](const Logs& logs) { test = logs; },
                                 .on_test_batch_end = look});
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {4, 1});
  const Tensor y = Tensor::from<float>({0, 0, 1, 1}, {4, 1});
  model->fit(x, y,
             {.batch_size = 2,
              .verbose = Verbose::kSilent,
              .callbacks = {note},
              .validation_data = {x, y}});
  EXPECT_EQ(batches, 4);
  EXPECT_TRUE(epoch.contains("area"));
  EXPECT_EQ(epoch.at("val_area"), 1);
  EXPECT_EQ(test.at("area"), 1);
  EXPECT_TRUE(model->train_on_batch(x, y).contains("area"));
}

}  // namespace keel::loop_test
