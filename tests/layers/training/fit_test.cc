// Tests layers/callbacks/learning_rate_scheduler.cc, layers/training/callback.cc,
// internal/callback_list.cc, batch_validation.cc, fit_loop.cc and trainer.cc.
#include <cmath>
#include <functional>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/callbacks.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/losses.h>
#include <keel/metrics.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::fit_test {

using data::Dataset;
using distribute::Strategy;
using distribute::TPUStrategy;
using testing::HasSubstr;
using testing_support::message_of;
using testing_support::normal;
using testing_support::weights_of;

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Labels computed by a fixed linear function of three features.
struct Line {
  explicit Line(int64_t rows) : x(normal({rows, 3}, 5)) {
    const Tensor slope = Tensor::from<float>({1, -2, 0.5f}, {3, 1});
    y = ops::shift(ops::matmul(x, slope), 0.25);
  }
  Tensor x, y;
};

Sequential linear_model(const OptimizerArgument& optimizer = optimizers::SGD({})) {
  Sequential model({.layers = {layers::Dense({.units = 1, .kernel_initializer = "zeros"})}});
  model->compile({.optimizer = optimizer, .loss = "mse", .metrics = {"mae"}});
  return model;
}

// Two dense layers with the same initial weights in each call.
Sequential deep_model(const LossArgument& loss = "binary_crossentropy") {
  set_random_seed(3);
  Sequential model({.layers = {layers::Dense({.units = 8, .activation = "tanh"}),
                               layers::Dense({.units = 1, .activation = "sigmoid"})}});
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 0.5}),
                  .loss = loss,
                  .metrics = {"auc", "accuracy"}});
  return model;
}

Tensor clicks(const Tensor& x) {
  return ops::cast(ops::greater(ops::slice(x, 1, 0, 1), ops::slice(x, 1, 1, 1)), DType::kFloat32);
}

struct Outcome {
  std::vector<float> weights;
  std::vector<double> loss, auc;
};

// Trains on `rows` rows in batches of 8; the last batch is short unless 8 divides `rows`.
Outcome run_with(Strategy& strategy, int64_t rows,
                 const LossArgument& loss = "binary_crossentropy") {
  const auto scope = strategy.scope();
  const Sequential model = deep_model(loss);
  const Tensor x = normal({rows, 3}, 9);
  const History history = model->fit(
      x, clicks(x), {.epochs = 3, .batch_size = 8, .seed = 4, .verbose = Verbose::kSilent});
  return {weights_of(*model), history["loss"], history["auc"]};
}

void expect_close(const Outcome& a, const Outcome& b) {
  ASSERT_EQ(a.weights.size(), b.weights.size());
  for (size_t i = 0; i < a.weights.size(); ++i) {
    EXPECT_NEAR(a.weights[i], b.weights[i], 1e-5 * std::abs(b.weights[i]) + 1e-7) << i;
  }
  for (size_t i = 0; i < a.loss.size(); ++i) {
    EXPECT_NEAR(a.loss[i], b.loss[i], 1e-5 * b.loss[i]);
    EXPECT_NEAR(a.auc[i], b.auc[i], 1e-9);
  }
}

TEST(FitTest, LinearRegressionFindsTheLine) {
  const Line line(256);
  const Sequential model = linear_model(optimizers::SGD({.learning_rate = 0.1}));
  const History history =
      model->fit(line.x, line.y, {.epochs = 30, .seed = 1, .verbose = Verbose::kSilent});
  const std::vector<float> weights = weights_of(*model);
  const std::vector<float> expected = {1, -2, 0.5f, 0.25f};
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(weights[i], expected[i], 1e-4);
  EXPECT_EQ(history.epochs().size(), 30u);
  EXPECT_LT(history["loss"].back(), 1e-7);
}

TEST(FitTest, OneStepMatchesTheFormula) {
  const Line line(10);
  const Sequential model = linear_model(optimizers::SGD({.learning_rate = 0.5}));
  const Logs logs = model->train_on_batch(line.x, line.y);
  double loss = 0, bias = 0;
  for (const float y : line.y.data<float>()) {
    loss += y * y / 10;
    bias += 0.5 * 2 * y / 10;
  }
  EXPECT_NEAR(logs.at("loss"), loss, 1e-6 * loss);
  EXPECT_NEAR(weights_of(*model)[3], bias, 1e-6);
}

TEST(FitTest, ReplicasTrainAsOne) {
  Strategy& cpu = Strategy::current();
  const Outcome one = run_with(cpu, 64);
  for (const int cores : {2, 4}) {
    TPUStrategy tpu({.num_cores = cores});
    expect_close(run_with(tpu, 64), one);
  }
}

TEST(FitTest, ReplicasWithFewerRowsOrNoneTrainAsOne) {
  TPUStrategy tpu({.num_cores = 4});
  for (const int64_t rows : {13, 10, 9, 2}) {  // last batches of 5, 2, 1 and 2 rows
    expect_close(run_with(tpu, rows), run_with(Strategy::current(), rows));
  }
}

TEST(FitTest, ReplicasAgreeWithOneForEveryReduction) {
  TPUStrategy tpu({.num_cores = 4});
  for (const char* reduction : {"sum", "mean_with_sample_weight"}) {
    const LossArgument loss = losses::BinaryCrossentropy({.reduction = reduction});
    expect_close(run_with(tpu, 13, loss), run_with(Strategy::current(), 13, loss));
  }
}

TEST(FitTest, BitsDoNotDependOnTheNumberOfWorkers) {
  const int before = num_workers();
  std::vector<Outcome> runs;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    TPUStrategy tpu({.num_cores = 4});
    runs.push_back(run_with(tpu, 45));
  }
  set_num_workers(before);
  for (const Outcome& run : runs) {
    EXPECT_EQ(run.weights, runs[0].weights);
    EXPECT_EQ(run.loss, runs[0].loss);
    EXPECT_EQ(run.auc, runs[0].auc);
  }
}

TEST(FitTest, TheLossOfAnEpochIsTheMeanOverItsRows) {
  const Line line(10);
  const Sequential model = linear_model(optimizers::SGD({.learning_rate = 0}));
  const History history =
      model->fit(line.x, line.y, {.batch_size = 4, .verbose = Verbose::kSilent});
  double loss = 0, error = 0;
  for (const float y : line.y.data<float>()) {
    loss += y * y / 10;
    error += std::abs(y) / 10;
  }
  EXPECT_NEAR(history["loss"][0], loss, 1e-6 * loss);
  EXPECT_NEAR(history["mae"][0], error, 1e-6 * error);
}

TEST(FitTest, EvaluateMatchesManualLossAndMetrics) {
  TPUStrategy tpu({.num_cores = 4});
  const auto scope = tpu.scope();
  const Sequential model = deep_model();
  const Tensor x = normal({21, 3}, 2), y = clicks(x);
  const Logs logs = model->evaluate(x, y, {.batch_size = 8, .verbose = Verbose::kSilent});
  const Tensor p = model->predict(x, {.batch_size = 8, .verbose = Verbose::kSilent}).tensor();
  EXPECT_NEAR(logs.at("loss"), losses::get("bce")->call(y, p).item<float>(), 1e-6);
  const MetricHandle auc = metrics::get("auc");
  auc->update_state(y, p);
  EXPECT_NEAR(logs.at("auc"), auc->result(), 1e-12);
}

TEST(FitTest, PredictKeepsTheOrderOfRows) {
  const Tensor x = normal({11, 3}, 2);
  const Sequential model = deep_model();
  const Tensor expected = model(x);
  TPUStrategy tpu({.num_cores = 4});
  const auto scope = tpu.scope();
  for (const int64_t batch_size : {1, 3, 4, 11, 50}) {
    const Sequential same = deep_model();
    const Tensor received =
        same->predict(x, {.batch_size = batch_size, .verbose = Verbose::kSilent}).tensor();
    ASSERT_EQ(received.shape(), expected.shape());
    for (int i = 0; i < 11; ++i) {
      EXPECT_NEAR(received.data<float>()[i], expected.data<float>()[i], 1e-6);
    }
  }
}

TEST(FitTest, PredictionsAreNotRecordedOnAnOpenTape) {
  const Tensor x = normal({256, 200}, 2);
  Sequential model({.layers = {layers::Dense({.units = 200})}});
  model->compile({.loss = "mse"});
  const auto predicted = [&] {
    return model->predict(x, {.batch_size = 256, .verbose = Verbose::kSilent})
        .tensor()
        .to_vector<float>();
  };
  const std::vector<float> expected = predicted();
  const GradientTape tape;
  EXPECT_EQ(predicted(), expected);
}

TEST(FitTest, PredictUsesTheFirstItemOfTuples) {
  const Sequential model = linear_model();
  const Tensor x = normal({4, 3}, 2);
  const Dataset pairs = Dataset::from_tensors(Tensors::tuple({x, Tensor::zeros({4, 1})}));
  EXPECT_EQ(model->predict(pairs, {.verbose = Verbose::kSilent}).tensor().shape(), Shape({4, 1}));
  EXPECT_EQ(
      model->predict(Dataset::from_tensors(x), {.verbose = Verbose::kSilent}).tensor().shape(),
      Shape({4, 1}));
}

TEST(FitTest, SampleWeightsCountRows) {
  const Line line(6);
  const Tensor weights = Tensor::from<float>({2, 0, 1, 0, 0, 0}, {6});
  const Tensor rows = Tensor::from<int64_t>({0, 0, 2}, {3});
  const Sequential weighted = linear_model(), repeated = linear_model();
  weighted->fit(line.x, line.y,
                {.batch_size = 6, .sample_weight = weights, .verbose = Verbose::kSilent});
  repeated->compile({.optimizer = optimizers::SGD({.learning_rate = 0.005}), .loss = "mse"});
  repeated->fit(ops::gather(line.x, rows), ops::gather(line.y, rows),
                {.verbose = Verbose::kSilent});
  // 1/6 of the weighted sum equals 1/3 of it at half the rate.
  const std::vector<float> a = weights_of(*weighted), b = weights_of(*repeated);
  for (size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-7);
}

TEST(FitTest, OnlyWeightedMetricsUseSampleWeights) {
  const Line line(2);
  const Sequential model = linear_model();
  model->compile({.loss = "mse",
                  .metrics = {metrics::MeanAbsoluteError({.name = "error"})},
                  .weighted_metrics = {metrics::MeanAbsoluteError({.name = "error"})}});
  const Logs logs = model->evaluate(
      line.x, line.y,
      {.sample_weight = Tensor::from<float>({3, 0}, {2}), .verbose = Verbose::kSilent});
  const auto y = line.y.data<float>();
  EXPECT_NEAR(logs.at("error"), (std::abs(y[0]) + std::abs(y[1])) / 2, 1e-6);
  EXPECT_NEAR(logs.at("weighted_error"), std::abs(y[0]) * 3 / 3, 1e-6);
}

TEST(FitTest, ValidationIsLoggedForEachEpoch) {
  const Line line(40), other(8);
  const Sequential model = linear_model();
  const History history =
      model->fit(line.x, line.y,
                 {.epochs = 2, .verbose = Verbose::kSilent, .validation_data = {other.x, other.y}});
  const Logs logs = model->evaluate(other.x, other.y, {.verbose = Verbose::kSilent});
  EXPECT_EQ(history["val_loss"].size(), 2u);
  EXPECT_EQ(history["val_loss"][1], logs.at("loss"));
  EXPECT_EQ(history["val_mae"][1], logs.at("mae"));
}

TEST(FitTest, ValidationSplitTakesTheLastRows) {
  const Line line(10);
  const Sequential model = linear_model(optimizers::SGD({.learning_rate = 0}));
  const History history =
      model->fit(line.x, line.y, {.verbose = Verbose::kSilent, .validation_split = 0.3});
  double loss = 0;
  for (const float y : line.y.data<float>().subspan(7)) loss += y * y / 3;
  EXPECT_NEAR(history["val_loss"][0], loss, 1e-6 * loss);
}

TEST(FitTest, ValidationFreqSkipsEpochs) {
  const Line line(8);
  const Sequential model = linear_model();
  const auto epochs_with = [&](const std::variant<int64_t, std::vector<int64_t>>& freq) {
    std::vector<int64_t> out;
    const History history = model->fit(line.x, line.y,
                                       {.epochs = 5,
                                        .verbose = Verbose::kSilent,
                                        .validation_data = {line.x, line.y},
                                        .validation_freq = freq});
    for (size_t i = 0; i < 5; ++i) {
      if (!std::isnan(history["val_loss"][i])) out.push_back(static_cast<int64_t>(i) + 1);
    }
    return out;
  };
  EXPECT_EQ(epochs_with(2), (std::vector<int64_t>{2, 4}));
  EXPECT_EQ(epochs_with(std::vector<int64_t>{1, 4}), (std::vector<int64_t>{1, 4}));
  EXPECT_THROW(epochs_with(0), ValueError);
}

TEST(FitTest, ValidationHasItsOwnBatchSize) {
  const Line line(8);
  const Sequential model = linear_model();
  int64_t batches = 0;
  const auto count =
      callbacks::LambdaCallback({.on_test_batch_end = [&](int64_t, const Logs&) { ++batches; }});
  model->fit(line.x, line.y,
             {.batch_size = 4,
              .verbose = Verbose::kSilent,
              .callbacks = {count},
              .validation_data = {line.x, line.y},
              .validation_steps = 3,
              .validation_batch_size = 2});
  EXPECT_EQ(batches, 3);
}

TEST(FitTest, LambdaCallbacksSeeAllEvents) {
  const Line line(4);
  const Sequential model = linear_model();
  std::string seen;
  const auto note = [&](const char* what) { seen += what; };
  const auto lambda =
      callbacks::LambdaCallback({.on_epoch_begin = [&](int64_t) { note("e"); },
                                 .on_epoch_end = [&](int64_t, Logs&) { note("E"); },
                                 .on_train_begin = [&] { note("t"); },
                                 .on_train_end = [&](const Logs&) { note("T"); },
                                 .on_train_batch_begin = [&](int64_t) { note("b"); },
                                 .on_train_batch_end = [&](int64_t, const Logs&) { note("B"); },
                                 .on_test_begin = [&] { note("v"); },
                                 .on_test_end = [&](const Logs&) { note("V"); },
                                 .on_test_batch_begin = [&](int64_t) { note("x"); },
                                 .on_test_batch_end = [&](int64_t, const Logs&) { note("X"); },
                                 .on_predict_begin = [&] { note("p"); },
                                 .on_predict_end = [&] { note("P"); },
                                 .on_predict_batch_begin = [&](int64_t) { note("q"); },
                                 .on_predict_batch_end = [&](int64_t) { note("Q"); }});
  model->fit(line.x, line.y,
             {.batch_size = 2,
              .verbose = Verbose::kSilent,
              .callbacks = {lambda},
              .validation_data = {line.x, line.y}});
  EXPECT_EQ(seen, "tebBbBvxXxXVET");
  seen.clear();
  model->predict(line.x, {.verbose = Verbose::kSilent, .callbacks = {lambda}});
  EXPECT_EQ(seen, "pqQP");
}

TEST(FitTest, StepsPerEpochContinueInTheDataset) {
  std::vector<double> seen;
  const Dataset numbers = Dataset::from_tensor_slices(Tensors::tuple(
      {Tensor::from<float>({1, 2, 3, 4, 5}, {5, 1}), Tensor::from<float>({1, 2, 3, 4, 5}, {5})}));
  Sequential model({.layers = {layers::Dense({.units = 1, .kernel_initializer = "zeros"})}});
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mae"});
  const auto note = callbacks::Lambda(
      {.on_epoch_end = [&](int64_t, Logs& logs) { seen.push_back(logs["loss"]); }});
  model->fit(numbers.batch(1),
             {.epochs = 4, .verbose = Verbose::kSilent, .callbacks = {note}, .steps_per_epoch = 2});
  EXPECT_EQ(seen, (std::vector<double>{1.5, 3.5, 3, 2.5}));  // 1 2, 3 4, 5 1, 2 3
}

TEST(FitTest, InitialEpochSkipsEpochs) {
  const Line line(4);
  const Sequential model = linear_model();
  const History history =
      model->fit(line.x, line.y, {.epochs = 5, .initial_epoch = 3, .verbose = Verbose::kSilent});
  EXPECT_EQ(history.epochs(), (std::vector<int64_t>{3, 4}));
}

TEST(FitTest, StopTrainingEndsFitAfterTheStep) {
  const Line line(40);
  const Sequential model = linear_model();
  int64_t steps = 0;
  const auto stop = callbacks::Lambda({.on_train_batch_end = [&](int64_t batch, const Logs&) {
    ++steps;
    if (batch == 2) model->set_stop_training(true);
  }});
  const History history =
      model->fit(line.x, line.y,
                 {.epochs = 3, .batch_size = 4, .verbose = Verbose::kSilent, .callbacks = {stop}});
  EXPECT_EQ(steps, 3);
  EXPECT_EQ(history.epochs().size(), 1u);
}

TEST(FitTest, TheSchedulerSetsAndLogsTheRate) {
  const Line line(4);
  const Sequential model = linear_model(optimizers::SGD({.learning_rate = 1}));
  const auto halve = callbacks::LearningRateScheduler(
      {.schedule = [](int64_t epoch, double rate) { return epoch == 0 ? rate : rate / 2; }});
  const History history =
      model->fit(line.x, line.y, {.epochs = 3, .verbose = Verbose::kSilent, .callbacks = {halve}});
  EXPECT_EQ(history["learning_rate"], (std::vector<double>{1, 0.5, 0.25}));
  EXPECT_THROW(callbacks::LearningRateScheduler({}), ValueError);
}

TEST(FitTest, ANaNLabelIsRejectedWithItsRowBeforeAnyChange) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const Sequential model = linear_model();
  const Tensor x = Tensor::full<float>({8, 3}, 1);
  const Tensor y = Tensor::from<float>({0, 0, 0, 0, 0, 0, 0, kNaN}, {8});
  const std::string message = message_of<ValueError>(
      [&] { model->fit(x, y, {.batch_size = 4, .shuffle = false, .verbose = Verbose::kSilent}); });
  EXPECT_THAT(message, HasSubstr("epoch 1, step 2"));
  EXPECT_THAT(message, HasSubstr("row 3"));
  EXPECT_EQ(model->optimizer()->iterations(), 1);
  EXPECT_THAT(message_of<ValueError>([&] { model->test_on_batch(x, y); }), HasSubstr("row 7"));
}

TEST(FitTest, ANaNLossIsRejectedBeforeTheWeightsChange) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const Sequential model = linear_model();
  const Tensor x = Tensor::from<float>({1, 1, 1, 1, kNaN, 1}, {2, 3});
  const std::string message = message_of<ValueError>(
      [&] { model->fit(x, Tensor::zeros({2}), {.verbose = Verbose::kSilent}); });
  EXPECT_THAT(message, HasSubstr("epoch 1, step 1"));
  EXPECT_THAT(message, HasSubstr("the loss is NaN"));
  EXPECT_EQ(model->optimizer()->iterations(), 0);
  EXPECT_EQ(weights_of(*model), std::vector<float>(4));
  // The strategy and the model remain usable.
  EXPECT_NO_THROW(model->train_on_batch(Tensor::zeros({3, 3}), Tensor::zeros({3})));
}

TEST(FitTest, CompileRejectsNonScalarLosses) {
  Sequential model({});
  EXPECT_THROW(model->compile({.loss = losses::MeanSquaredError({.reduction = "none"})}),
               ValueError);
  EXPECT_THROW(model->compile({.loss = "no_such_loss"}), ValueError);
  EXPECT_FALSE(model->compiled());
}

TEST(FitTest, FitRequiresCompileAndAnOptimizer) {
  const Line line(4);
  const Sequential model({.layers = {layers::Dense({.units = 1})}});
  EXPECT_THROW(model->fit(line.x, line.y), RuntimeError);
  EXPECT_THROW(model->evaluate(line.x, line.y), RuntimeError);
  EXPECT_THROW(model->train_on_batch(line.x, line.y), RuntimeError);
  model->compile({.loss = "mse"});
  EXPECT_THROW(model->fit(line.x, line.y, {.verbose = Verbose::kSilent}), RuntimeError);
  EXPECT_NO_THROW(model->evaluate(line.x, line.y, {.verbose = Verbose::kSilent}));
}

TEST(FitTest, OptionsOutOfRangeAreRejected) {
  const Line line(4);
  const Sequential model = linear_model();
  EXPECT_THROW(model->fit(line.x, line.y, {.epochs = -1}), ValueError);
  EXPECT_THROW(model->fit(line.x, line.y, {.initial_epoch = -1}), ValueError);
  EXPECT_THROW(model->fit(line.x, line.y, {.batch_size = 0}), ValueError);
  EXPECT_THROW(model->fit(line.x, line.y, {.validation_split = 1}), ValueError);
  EXPECT_THROW(model->fit(line.x, line.y, {.validation_split = 0.9}), ValueError);
  EXPECT_THROW(model->fit(line.x, line.y, {.steps_per_epoch = 0}), ValueError);
  EXPECT_THROW(
      model->fit(line.x, line.y, {.validation_data = {line.x, line.y}, .validation_split = 0.5}),
      ValueError);
  EXPECT_THROW(model->predict(line.x, {.batch_size = -1}), ValueError);
  EXPECT_THROW(model->fit(line.x, Tensor::zeros({5, 1})), ValueError);
}

TEST(FitTest, DatasetsOfWrongStructureAreRejected) {
  const Line line(4);
  const Sequential model = linear_model();
  const Dataset good = Dataset::from_tensors(Tensors::tuple({line.x, line.y}));
  const FitOptions quiet = {.verbose = Verbose::kSilent};
  EXPECT_THROW(model->fit(Dataset::from_tensors(line.x), quiet), ValueError);
  EXPECT_THROW(model->fit(good.repeat(), quiet), ValueError);
  EXPECT_THROW(model->fit(good.take(0), quiet), ValueError);
  EXPECT_THROW(model->evaluate(good.take(0), {.verbose = Verbose::kSilent}), ValueError);
  EXPECT_THROW(model->predict(good.take(0), {.verbose = Verbose::kSilent}), ValueError);
  EXPECT_THROW(model->fit(good, {.validation_split = 0.5}), ValueError);
  EXPECT_THROW(model->evaluate(good, {.sample_weight = line.y}), ValueError);
  const Tensors two = Tensors::list({line.y, line.y});
  EXPECT_THROW(model->fit(Dataset::from_tensors(Tensors::tuple({line.x, two})), quiet), ValueError);
  const Tensors four = Tensors::tuple({line.x, line.y, line.y, line.y});
  EXPECT_THROW(model->fit(Dataset::from_tensors(four), quiet), ValueError);
}

TEST(FitTest, TheCompileConfigMatchesKeras) {
  const Sequential model({});
  EXPECT_TRUE(model->get_compile_config().is_null());
  model->compile({.optimizer = optimizers::SGD({}),
                  .loss = losses::Huber({}),
                  .metrics = {"accuracy", metrics::AUC({})}});
  const Config config = model->get_compile_config();
  EXPECT_EQ(config["optimizer"]["class_name"], Config("SGD"));
  EXPECT_EQ(config["loss"]["class_name"], Config("Huber"));
  EXPECT_EQ(config["metrics"].items()[0], Config("accuracy"));
  EXPECT_EQ(config["metrics"].items()[1]["class_name"], Config("AUC"));
  const Sequential other({});
  other->compile_from_config(config);
  EXPECT_EQ(other->get_compile_config(), config);
}

TEST(FitTest, LayersAreFoundByName) {
  const Sequential model({.layers = {layers::Dense({.units = 1, .name = "head"})}});
  EXPECT_EQ(model->get_layer("head")->class_name(), "Dense");
  EXPECT_THROW(model->get_layer("tail"), ValueError);
  const int64_t last = std::ssize(model->layers()) - 1;
  EXPECT_EQ(model->get_layer(0), model->layers()[0]);
  EXPECT_EQ(model->get_layer(-1), model->layers()[last]);
  EXPECT_THROW(model->get_layer(last + 1), ValueError);
  EXPECT_THROW(model->get_layer(-last - 2), ValueError);
}

TEST(FitTest, UseAfterTheStrategyIsDestroyedIsAnError) {
  const auto model = std::invoke([] {
    distribute::TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    const Sequential made({.layers = {layers::Dense({.units = 1})}});
    made->compile({.optimizer = "sgd", .loss = "mean_squared_error"});
    return made;
  });
  EXPECT_THROW(model->predict(Tensors(Tensor::full<float>({2, 2}, 1))), RuntimeError);
}

}  // namespace keel::fit_test
