#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/callbacks/lambda_callback.h>
#include <keel/layers/callbacks/optimizer_callbacks.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/losses.h>
#include <keel/optimizers/sgd.h>

namespace keel::swap_ema_weights_test {

const Tensor& features() {
  static const Tensor value = Tensor::from<float>({1, 1, 1, 1}, {4, 1});
  return value;
}
const Tensor& labels() {
  static const Tensor value = Tensor::zeros({4, 1});
  return value;
}

// A model with one weight w, initially 1, and the loss |w|, so that a step subtracts the learning
// rate.
Sequential sliding(bool use_ema = true) {
  const Sequential model(
      {.layers = {layers::Dense({.units = 1, .use_bias = false, .kernel_initializer = "ones"})}});
  model->compile({.optimizer = optimizers::SGD(
                      {.learning_rate = 0.25, .use_ema = use_ema, .ema_momentum = 0.5}),
                  .loss = "mae"});
  return model;
}

float weight(const Sequential& model) { return model->weights()[0].read().item<float>(); }

// After two steps the weight is 0.5 and its average is 0.5 * 0.75 + 0.5 * 0.5 = 0.625.
FitOptions two_steps(std::vector<CallbackHandle> callbacks) {
  return {.epochs = 2,
          .batch_size = 4,
          .verbose = Verbose::kSilent,
          .callbacks = std::move(callbacks),
          .validation_data = {features(), labels()}};
}

TEST(SwapEMAWeightsTest, TheValidationSeesTheAverages) {
  distribute::CPUStrategy cpu;
  distribute::TPUStrategy tpu({.num_cores = 2});
  for (distribute::Strategy* strategy : std::initializer_list<distribute::Strategy*>{&cpu, &tpu}) {
    const auto scope = strategy->scope();
    const Sequential model = sliding();
    std::vector<float> weights;
    const auto note = callbacks::Lambda(
        {.on_epoch_end = [&](int64_t, Logs&) { weights.push_back(weight(model)); }});
    const History history =
        model->fit(features(), labels(), two_steps({callbacks::SwapEMAWeights({}), note}));
    EXPECT_EQ(history["loss"], (std::vector<double>{1, 0.75}));
    EXPECT_EQ(history["val_loss"], (std::vector<double>{0.75, 0.625}));
    EXPECT_EQ(weights, (std::vector<float>{0.75F, 0.5F}));
    // At the end of fit the averages replace the weights.
    EXPECT_EQ(weight(model), 0.625F);
  }
}

TEST(SwapEMAWeightsTest, LaterCallbacksSeeTheAveragesOnRequest) {
  const Sequential model = sliding();
  std::vector<float> weights;
  const auto note = callbacks::Lambda(
      {.on_epoch_end = [&](int64_t, Logs&) { weights.push_back(weight(model)); }});
  const History history = model->fit(
      features(), labels(), two_steps({callbacks::SwapEMAWeights({.swap_on_epoch = true}), note}));
  EXPECT_EQ(weights, (std::vector<float>{0.75F, 0.625F}));
  EXPECT_EQ(history["loss"], (std::vector<double>{1, 0.75}));
  EXPECT_EQ(weight(model), 0.625F);
}

TEST(SwapEMAWeightsTest, TheCallbackCanBeUsedAgain) {
  const Sequential model = sliding();
  const callbacks::SwapEMAWeights swap({.swap_on_epoch = true});
  model->fit(features(), labels(), two_steps({swap}));
  model->weights()[0].assign(Tensor::from<float>({3}, {1, 1}));
  const Logs logs =
      model->evaluate(features(), labels(), {.verbose = Verbose::kSilent, .callbacks = {swap}});
  EXPECT_EQ(logs.at("loss"), 0.625);
  EXPECT_EQ(weight(model), 3);
  model->predict(features(), {.verbose = Verbose::kSilent, .callbacks = {swap}});
  EXPECT_EQ(weight(model), 3);
}

TEST(SwapEMAWeightsTest, EvaluatingBetweenEpochsKeepsTheTrainedWeights) {
  const Sequential model = sliding();
  const callbacks::SwapEMAWeights swap({.swap_on_epoch = true});
  std::vector<double> losses;
  const auto evaluate = callbacks::Lambda({.on_epoch_end = [&](int64_t, Logs&) {
    losses.push_back(
        model->evaluate(features(), labels(), {.verbose = Verbose::kSilent, .callbacks = {swap}})
            .at("loss"));
  }});
  const History history = model->fit(features(), labels(), two_steps({swap, evaluate}));
  EXPECT_EQ(losses, (std::vector<double>{0.75, 0.625}));
  EXPECT_EQ(history["loss"], (std::vector<double>{1, 0.75}));
}

TEST(SwapEMAWeightsTest, AnOptimizerWithoutAveragesIsRejected) {
  EXPECT_THROW(
      sliding(false)->fit(features(), labels(), two_steps({callbacks::SwapEMAWeights({})})),
      RuntimeError);
}

}  // namespace keel::swap_ema_weights_test
