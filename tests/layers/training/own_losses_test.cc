// Losses in addition to those of compile(): regularizers, add_loss, and masks of predictions.
#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/losses.h>
#include <keel/metrics.h>
#include <keel/optimizers/sgd.h>

namespace keel::own_losses_test {

using distribute::TPUStrategy;

const Tensor& features() {
  static const Tensor value = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {6, 1});
  return value;
}
const Tensor& labels() {
  static const Tensor value = Tensor::from<float>({0, 1, 0, 1, 0, 1}, {6, 1});
  return value;
}

// Runs `fn` under one replica and under several replicas.
template <class Fn>
void under_each_strategy(const Fn& fn) {
  distribute::CPUStrategy cpu;
  TPUStrategy two({.num_cores = 2}), four({.num_cores = 4});
  for (distribute::Strategy* strategy :
       std::initializer_list<distribute::Strategy*>{&cpu, &two, &four}) {
    SCOPED_TRACE(strategy->num_replicas_in_sync());
    const auto scope = strategy->scope();
    fn();
  }
}

TEST(OwnLossesTest, TheLossIncludesRegularizersOnce) {
  under_each_strategy([] {
    const Sequential model(
        {.layers = {layers::Dense({.units = 1,
                                   .use_bias = false,
                                   .kernel_initializer = "ones",
                                   .kernel_regularizer = regularizers::l2(0.25)})}});
    model->compile(
        {.optimizer = optimizers::SGD({.learning_rate = 1}), .loss = "mse", .metrics = {"mse"}});
    double mean = 0, slope = 0;
    for (int i = 0; i < 6; ++i) {
      const double x = features().data<float>()[i], error = x - labels().data<float>()[i];
      mean += error * error / 6;
      slope += 2 * error * x / 6;
    }
    const Logs before = model->test_on_batch(features(), labels());
    EXPECT_NEAR(before.at("loss"), mean + 0.25, 1e-5);
    EXPECT_NEAR(before.at("mse"), mean, 1e-5);
    const Logs logs = model->train_on_batch(features(), labels());
    EXPECT_NEAR(logs.at("loss"), mean + 0.25, 1e-5);
    // d 0.25 w^2 / dw = 0.5 at w = 1.
    EXPECT_NEAR(model->weights()[0].read().item<float>(), 1 - slope - 0.5, 1e-4);
  });
}

// Computes y = w x and adds the loss mean((w x)^2) / 2.
class SelfTaught final : public Model {
 public:
  SelfTaught() : Model("SelfTaught") {}

 private:
  Tensors call(const Tensors& x, const CallContext&) override {
    const Tensor y = scale_(x.tensor());
    add_loss(ops::mean(ops::square(y)) / 2);
    return y;
  }
  layers::Dense scale_ =
      track(layers::Dense({.units = 1, .use_bias = false, .kernel_initializer = "ones"}));
};

TEST(OwnLossesTest, AModelThatAddsItsLossNeedsNoLabels) {
  const Tensor inputs = features();
  double mean = 0;
  for (const float x : inputs.data<float>()) mean += x * x / 6;
  // Each of two replicas has three rows, so the mean of their means is the mean over all rows.
  TPUStrategy two({.num_cores = 2});
  distribute::CPUStrategy cpu;
  for (distribute::Strategy* strategy : std::initializer_list<distribute::Strategy*>{&cpu, &two}) {
    const auto scope = strategy->scope();
    const auto model = make_layer<SelfTaught>();
    model->compile({.optimizer = optimizers::SGD({.learning_rate = 0.01})});
    const History history =
        model->fit(features(), {.epochs = 2, .batch_size = 6, .verbose = Verbose::kSilent});
    EXPECT_NEAR(history["loss"][0], mean / 2, 1e-5);
    EXPECT_NEAR(history["loss"][1], std::pow(1 - 0.01 * mean, 2) * mean / 2, 1e-4);
    EXPECT_EQ(model->evaluate(features(), {.verbose = Verbose::kSilent}).size(), 1u);
    EXPECT_NO_THROW(
        model->fit(data::Dataset::from_tensors(features()), {.verbose = Verbose::kSilent}));
    EXPECT_NO_THROW(model->train_on_batch(features()));
  }
}

TEST(OwnLossesTest, AStepWithoutAnyLossIsAnError) {
  const Sequential model({.layers = {layers::Dense({.units = 1})}});
  model->compile({.optimizer = "sgd"});
  EXPECT_THROW(model->train_on_batch(features(), labels()), ValueError);
  EXPECT_THROW(model->fit(features(), {.verbose = Verbose::kSilent}), ValueError);
  model->compile({.optimizer = "sgd", .loss = "mse"});
  EXPECT_THROW(model->train_on_batch(features()), ValueError);  // no labels
  EXPECT_THROW(model->train_on_batch(features(), {}, {.sample_weight = labels()}), ValueError);
}

// Reshapes x [batch, steps] to [batch, steps, 1], masked where it is negative.
class Masked final : public Layer {
 public:
  Masked() : Layer("Masked") {}
  bool supports_masking() const override { return true; }
  std::vector<Tensor> compute_mask(const Tensors& inputs, const Tensors&) const override {
    const Tensor x = inputs.tensor();
    return {ops::greater_equal(x, ops::zeros_like(x))};
  }

 private:
  Tensors call(const Tensors& x, const CallContext&) override {
    return ops::expand_dims(x.tensor(), -1);
  }
};

Sequential masked_model(const LossArgument& loss) {
  const Sequential model({.layers = {make_layer<Masked>(),
                                     layers::Dense({.units = 1, .kernel_initializer = "zeros"})}});
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 1}),
                  .loss = loss,
                  .weighted_metrics = {"mae"}});
  return model;
}

// Three of the eight steps are unmasked: labels 1, 2 and 3.
const Tensor& steps() {
  static const Tensor value = Tensor::from<float>({0, -1, -1, -1, 0, 0, -1, -1}, {4, 2});
  return value;
}
const Tensor& step_labels() {
  static const Tensor value = Tensor::from<float>({1, 50, 60, 70, 2, 3, 80, 90}, {4, 2, 1});
  return value;
}

TEST(OwnLossesTest, TheMeanLossExcludesMaskedSteps) {
  under_each_strategy([] {
    const Sequential model = masked_model("mse");
    EXPECT_NEAR(model->train_on_batch(steps(), step_labels()).at("loss"), (1 + 4 + 9) / 3.0, 1e-5);
    EXPECT_NEAR(model->weights()[1].read().item<float>(), 2 * (1 + 2 + 3) / 3.0, 1e-5);
  });
}

TEST(OwnLossesTest, MasksMultiplySampleWeights) {
  const Tensor weight = Tensor::from<float>({1, 1, 1, 1, 2, 0.5, 1, 1}, {4, 2});
  under_each_strategy([&] {
    const Logs mean =
        masked_model("mse")->test_on_batch(steps(), step_labels(), {.sample_weight = weight});
    EXPECT_NEAR(mean.at("loss"), (1 + 2 * 4 + 0.5 * 9) / 3, 1e-5);
    const Logs sum = masked_model(losses::MeanSquaredError({.reduction = "sum"}))
                         ->test_on_batch(steps(), step_labels(), {.sample_weight = weight});
    EXPECT_NEAR(sum.at("loss"), 1 + 2 * 4 + 0.5 * 9, 1e-5);
    const Logs by_weight =
        masked_model(losses::MeanSquaredError({.reduction = "mean_with_sample_weight"}))
            ->test_on_batch(steps(), step_labels(), {.sample_weight = weight});
    EXPECT_NEAR(by_weight.at("loss"), (1 + 2 * 4 + 0.5 * 9) / 3.5, 1e-5);
    EXPECT_NEAR(by_weight.at("mae"), (1 + 2 * 2 + 0.5 * 3) / 3.5, 1e-5);
  });
}

TEST(OwnLossesTest, AFullyMaskedBatchHasNoLoss) {
  const Sequential model = masked_model("mse");
  const Tensor none = Tensor::full<float>({4, 2}, -1);
  EXPECT_EQ(model->test_on_batch(none, step_labels()).at("loss"), 0);
}

}  // namespace keel::own_losses_test
