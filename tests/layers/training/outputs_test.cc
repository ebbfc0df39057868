// Models with several outputs: losses, weights, metrics, labels and logs by output.
// Tests layers/training/compile/metrics_argument.cc, step_data.cc, internal/compiled_loss.cc,
// compiled_metrics.cc, layers/training/internal/output_names.cc and per_replica_values.cc.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/losses.h>
#include <keel/metrics.h>
#include <keel/optimizers/sgd.h>

namespace keel::outputs_test {

using distribute::TPUStrategy;

layers::Dense zero_dense(const std::string& name) {
  return layers::Dense({.units = 1, .kernel_initializer = "zeros", .name = name});
}

// Outputs "click" and "stay" as a list, or as a dict with keys "c" and "s". Both are 0 before
// training.
Functional two_heads(bool as_dict = false) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Tensor click = zero_dense("click")(x), stay = zero_dense("stay")(x);
  return Functional(
      {.inputs = x,
       .outputs = as_dict ? Tensors({{"c", click}, {"s", stay}}) : Tensors::list({click, stay})});
}

// Five rows; mean(click^2) is 3 and mean(|stay|) is 2.
const Tensor& features() {
  static const Tensor value = Tensor::from<float>({1, 0, 0, 1, 1, 1, 2, 0, 0, 2}, {5, 2});
  return value;
}
const Tensor& click() {
  static const Tensor value = Tensor::from<float>({1, 1, 2, 0, 3}, {5, 1});
  return value;
}
const Tensor& stay() {
  static const Tensor value = Tensor::from<float>({1, -2, 3, -4, 0}, {5, 1});
  return value;
}
const Tensors& both_labels() {
  static const Tensors value = Tensors::list({click(), stay()});
  return value;
}

OptimizerArgument still() { return optimizers::SGD({.learning_rate = 0}); }

// Compares sums of float32 values with a tolerance.
void expect_logs(const Logs& received, const Logs& expected) {
  for (const auto& [name, value] : expected) {
    ASSERT_TRUE(received.contains(name)) << name;
    EXPECT_NEAR(received.at(name), value, 1e-6 * std::abs(value)) << name;
  }
  for (const auto& [name, value] : received) EXPECT_TRUE(expected.contains(name)) << name;
}

TEST(OutputsTest, OneLossAppliesToAllOutputs) {
  const Functional model = two_heads();
  model->compile({.optimizer = still(), .loss = "mse"});
  expect_logs(model->train_on_batch(features(), both_labels()),
              {{"loss", 3 + 6}, {"click_loss", 3}, {"stay_loss", 6}});
}

TEST(OutputsTest, LossesAreMatchedByPositionOrName) {
  for (const LossesArgument& loss :
       {LossesArgument{"mse", "mae"}, LossesArgument{{"stay", "mae"}, {"click", "mse"}}}) {
    const Functional model = two_heads();
    model->compile({.optimizer = still(), .loss = loss});
    expect_logs(model->train_on_batch(features(), both_labels()),
                {{"loss", 3 + 2}, {"click_loss", 3}, {"stay_loss", 2}});
  }
}

TEST(OutputsTest, LossWeightsApplyToTheTotalOnly) {
  for (const LossWeights& weights : {LossWeights{0.5, 10.0}, LossWeights{{"stay", 10.0}}}) {
    const Functional model = two_heads();
    model->compile({.optimizer = still(), .loss = {"mse", "mae"}, .loss_weights = weights});
    const double first = weights.list() ? 0.5 : 1;
    expect_logs(model->train_on_batch(features(), both_labels()),
                {{"loss", first * 3 + 10 * 2}, {"click_loss", 3}, {"stay_loss", 2}});
  }
}

TEST(OutputsTest, LossWeightsScaleGradients) {
  // d mean((y - b)^2) / db = -2 mean(y) at b = 0.
  const Functional model = two_heads();
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 1}),
                  .loss = "mse",
                  .loss_weights = {0.5, 0.25}});
  model->train_on_batch(features(), both_labels());
  const auto bias = [&](const char* layer) {
    return model->get_layer(layer)->weights()[1].read().item<float>();
  };
  EXPECT_NEAR(bias("click"), 0.5 * 2 * 7 / 5, 1e-6);
  EXPECT_NEAR(bias("stay"), 0.25 * 2 * -2 / 5, 1e-6);
}

TEST(OutputsTest, AnOutputMayHaveNoLoss) {
  for (const LossesArgument& loss : {LossesArgument{{}, "mae"}, LossesArgument{{"stay", "mae"}}}) {
    const Functional model = two_heads();
    model->compile({.optimizer = still(), .loss = loss});
    expect_logs(model->train_on_batch(features(), both_labels()), {{"loss", 2}});
    // The output without a loss needs no labels either.
    expect_logs(model->train_on_batch(features(), Tensors({{"stay", stay()}})), {{"loss", 2}});
  }
}

TEST(OutputsTest, OutputsOfADictAreNamedByItsKeys) {
  const Functional model = two_heads(true);
  model->compile({.optimizer = still(),
                  .loss = {{"c", "mse"}, {"s", "mae"}},
                  .metrics = {{"s", {"mse", "mae"}}}});
  expect_logs(model->train_on_batch(features(), Tensors({{"c", click()}, {"s", stay()}})),
              {{"loss", 5}, {"c_loss", 3}, {"s_loss", 2}, {"s_mse", 6}, {"s_mae", 2}});
}

TEST(OutputsTest, LabelsAreMatchedByPositionOrName) {
  const Functional model = two_heads();
  model->compile({.optimizer = still(), .loss = {"mse", "mae"}});
  const Logs expected = {{"loss", 5}, {"click_loss", 3}, {"stay_loss", 2}};
  expect_logs(model->train_on_batch(features(), Tensors::tuple({click(), stay()})), expected);
  expect_logs(model->train_on_batch(features(), Tensors({{"stay", stay()}, {"click", click()}})),
              expected);
}

TEST(OutputsTest, MetricsAreMatchedByPositionOrName) {
  using List = MetricsArgument::List;
  const Logs expected = {
      {"loss", 9}, {"click_loss", 3}, {"stay_loss", 6}, {"click_mae", 1.4}, {"stay_mse", 6}};
  for (const MetricsArgument& metrics :
       {MetricsArgument{"mae", "mse"}, MetricsArgument{{"click", {"mae"}}, {"stay", {"mse"}}},
        MetricsArgument(std::vector<List>{List{"mae"}, List{"mse"}})}) {
    const Functional model = two_heads();
    model->compile({.optimizer = still(), .loss = "mse", .metrics = metrics});
    expect_logs(model->train_on_batch(features(), both_labels()), expected);
  }
}

TEST(OutputsTest, DuplicateMetricsAreNumberedAndWeightedOnesPrefixed) {
  const Functional model = two_heads();
  const auto error = [] { return metrics::MeanAbsoluteError({.name = "error"}); };
  model->compile({.optimizer = still(),
                  .loss = {{"click", "mse"}},
                  .metrics = {{"click", {error(), error()}}},
                  .weighted_metrics = {{"click", {error(), error()}}, {"stay", {error()}}}});
  expect_logs(model->train_on_batch(features(), both_labels()), {{"loss", 3},
                                                                 {"click_error", 1.4},
                                                                 {"click_error_1", 1.4},
                                                                 {"click_weighted_error", 1.4},
                                                                 {"click_weighted_error_1", 1.4},
                                                                 {"stay_error", 2}});
}

TEST(OutputsTest, SampleWeightsMayDifferByOutput) {
  const Functional model = two_heads();
  model->compile({.optimizer = still(), .loss = {"mse", "mae"}});
  const Tensor weight = Tensor::from<float>({1, 0, 2, 0, 0}, {5});
  expect_logs(model->train_on_batch(features(), both_labels(), {.sample_weight = weight}),
              {{"loss", 9.0 / 5 + 7.0 / 5}, {"click_loss", 9.0 / 5}, {"stay_loss", 7.0 / 5}});
  model->reset_metrics();
  expect_logs(model->train_on_batch(features(), both_labels(),
                                    {.sample_weight = Tensors({{"stay", weight}})}),
              {{"loss", 3 + 7.0 / 5}, {"click_loss", 3}, {"stay_loss", 7.0 / 5}});
}

TEST(OutputsTest, ReplicasLogTheValuesOfOne) {
  const auto run = [](distribute::Strategy& strategy) {
    const auto scope = strategy.scope();
    const Functional model = two_heads();
    model->compile(
        {.optimizer = optimizers::SGD({.learning_rate = 0.1}),
         .loss = {"mse", losses::MeanAbsoluteError({.reduction = "mean_with_sample_weight"})},
         .loss_weights = {1, 0.3},
         .metrics = {"mae", "mse"}});
    const Tensor weight = Tensor::from<float>({1, 0.5, 2, 0, 3}, {5});
    return model
        ->fit(features(), both_labels(),
              {.epochs = 3,
               .batch_size = 3,
               .seed = 1,
               .sample_weight = weight,
               .verbose = Verbose::kSilent,
               .validation_data = {features(), both_labels(), Tensors::list({weight, weight})}})
        .last();
  };
  distribute::CPUStrategy cpu;
  const Logs expected = run(cpu);
  EXPECT_TRUE(expected.contains("val_stay_loss"));
  EXPECT_TRUE(expected.contains("val_click_mae"));
  for (const int cores : {2, 4}) {
    TPUStrategy tpu({.num_cores = cores});
    const Logs received = run(tpu);
    ASSERT_EQ(received.size(), expected.size());
    for (const auto& [name, value] : expected) EXPECT_NEAR(received.at(name), value, 1e-5) << name;
  }
}

TEST(OutputsTest, InvalidNamesAndCountsAreRejected) {
  const auto refuses = [](CompileOptions options, const Tensors& labels = both_labels()) {
    const Functional model = two_heads();
    options.optimizer = still();
    model->compile(std::move(options));
    EXPECT_THROW(model->train_on_batch(features(), labels), ValueError);
    EXPECT_EQ(model->optimizer()->iterations(), 0);
  };
  refuses({.loss = {{"other", "mse"}}});
  refuses({.loss = {"mse", "mse", "mse"}});
  refuses({.loss = "mse", .loss_weights = {1.0}});
  refuses({.loss = "mse", .loss_weights = {{"other", 1.0}}});
  refuses({.loss = "mse", .metrics = {"mae"}});
  refuses({.loss = "mse", .metrics = {{"other", {"mae"}}}});
  refuses({.loss = "mse"}, click());
  refuses({.loss = "mse"}, Tensors({{"click", click()}}));
  refuses({.loss = "mse"}, Tensors({{"click", click()}, {"stay", stay()}, {"more", stay()}}));
  refuses({.loss = {{"click", "mse"}}, .metrics = {{"stay", {"mae"}}}},
          Tensors({{"click", click()}}));
}

TEST(OutputsTest, TheCompileConfigHasLossesAndMetricsByOutput) {
  const Functional model = two_heads(), same = two_heads();
  model->compile({.optimizer = optimizers::SGD({}),
                  .loss = {{"click", "mse"}, {"stay", losses::Huber({.delta = 2})}},
                  .loss_weights = {{"click", 0.5}},
                  .metrics = {{"click", {"mae"}}},
                  .weighted_metrics = {{"stay", {metrics::MeanSquaredError({})}}},
                  .jit_compile = false});
  const Config config = model->get_compile_config();
  EXPECT_EQ(config["loss"]["click"], Config("mse"));
  EXPECT_EQ(config["loss"]["stay"]["class_name"], Config("Huber"));
  EXPECT_EQ(config["loss_weights"]["click"], Config(0.5));
  EXPECT_EQ(config["metrics"]["click"], Config::list({"mae"}));
  EXPECT_EQ(config["jit_compile"], Config(false));
  same->compile_from_config(config);
  EXPECT_EQ(same->get_compile_config(), config);
  same->train_on_batch(features(), both_labels());
  const Functional listed = two_heads();
  listed->compile({.optimizer = still(),
                   .loss = {"mse", {}},
                   .loss_weights = {1.0, 2.0},
                   .metrics = {"mae", "mae"}});
  const Config of_list = listed->get_compile_config();
  EXPECT_TRUE(of_list["loss"].items()[1].is_null());
  same->compile_from_config(of_list);
  EXPECT_EQ(same->get_compile_config(), of_list);
}

}  // namespace keel::outputs_test
