#include <keel/optimizers/loss_scale.h>

#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"

namespace keel::loss_scale_test {

using testing::HasSubstr;
using testing_support::message_of;
using Values = std::vector<float>;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

Variable variable() { return {Tensor::from<float>({1, 2}, {2}), {.name = "w"}}; }

TEST(LossScaleOptimizerTest, UnscalesGradientsAndShareTheInnerState) {
  const optimizers::SGD inner({.learning_rate = 0.5});
  const optimizers::LossScaleOptimizer optimizer({.inner_optimizer = inner, .initial_scale = 8});
  EXPECT_EQ(optimizer->scale_loss(Tensor::scalar(3.0F)).item<float>(), 24);
  const Variable w = variable();
  optimizer->apply_gradients({Tensor::from<float>({8, 16}, {2})}, {w});
  EXPECT_EQ(w.read().to_vector<float>(), (Values{0.5, 1}));
  EXPECT_EQ(optimizer->iterations(), 1);
  EXPECT_EQ(inner->iterations(), 1);
  optimizer->set_learning_rate(0.25);
  EXPECT_EQ(inner->learning_rate(), 0.25);
  EXPECT_EQ(&optimizer->unwrapped(), &*inner);
}

TEST(LossScaleOptimizerTest, HalvesTheScaleAndSkipsTheStepIfAGradientIsNotFinite) {
  const optimizers::LossScaleOptimizer optimizer(
      {.inner_optimizer = optimizers::Adam({}), .initial_scale = 8});
  const Variable w = variable(), v = variable();
  for (const float bad : {kInfinity, -kInfinity, std::numeric_limits<float>::quiet_NaN()}) {
    optimizer->apply_gradients(
        {Tensor::from<float>({1, 1}, {2}), Tensor::from<float>({1, bad}, {2})}, {v, w});
  }
  EXPECT_EQ(optimizer->dynamic_scale(), 1);
  EXPECT_EQ(w.read().to_vector<float>(), (Values{1, 2}));
  EXPECT_EQ(v.read().to_vector<float>(), (Values{1, 2}));
  EXPECT_EQ(optimizer->iterations(), 0);
}

TEST(LossScaleOptimizerTest, DoublesTheScaleAfterSomeFiniteStepsInARow) {
  const optimizers::LossScaleOptimizer optimizer(
      {.inner_optimizer = optimizers::SGD({}), .initial_scale = 4, .dynamic_growth_steps = 2});
  const Variable w = variable();
  const Gradient good = Tensor::zeros({2}), bad = Tensor::full<float>({2}, kInfinity);
  std::vector<double> scales;
  for (const Gradient& g : {good, bad, good, good, good, good}) {
    optimizer->apply_gradients({g}, {w});
    scales.push_back(optimizer->dynamic_scale());
  }
  EXPECT_EQ(scales, (std::vector<double>{4, 2, 2, 4, 4, 8}));
}

TEST(LossScaleOptimizerTest, UnscalesSparseGradients) {
  const optimizers::LossScaleOptimizer optimizer(
      {.inner_optimizer = optimizers::SGD({.learning_rate = 1}), .initial_scale = 2});
  const Variable w(Tensor::zeros({3, 1}), {.name = "w"});
  optimizer->apply_gradients({IndexedSlices{.ids = Tensor::from<int64_t>({1}, {1}),
                                            .values = Tensor::from<float>({4}, {1, 1}),
                                            .dense_shape = {3, 1}}},
                             {w});
  EXPECT_EQ(w.read().to_vector<float>(), (Values{0, -2, 0}));
}

TEST(LossScaleOptimizerTest, AllReplicasSkipTheStepOfOne) {
  distribute::TPUStrategy strategy({.num_cores = 3});
  const auto scope = strategy.scope();
  const optimizers::LossScaleOptimizer optimizer(
      {.inner_optimizer = optimizers::SGD({.learning_rate = 1}),
       .initial_scale = 4,
       .dynamic_growth_steps = 1});
  const Variable w(Tensor::zeros({2}), {.name = "w"});
  const auto step = [&](float of_last) {
    const auto gradients = strategy.distribute_values_from_function(
        [&](int r) { return Tensor::full<float>({2}, r == 2 ? of_last : 4.0F); });
    strategy.run([&](const Tensor& g) { optimizer->apply_gradients({g}, {w}); }, gradients);
  };
  step(kInfinity);
  EXPECT_EQ(w.read().to_vector<float>(), (Values{0, 0}));
  EXPECT_EQ(optimizer->dynamic_scale(), 2);
  step(8);
  EXPECT_EQ(w.read().to_vector<float>(), (Values{-8, -8}));
  EXPECT_EQ(optimizer->dynamic_scale(), 4);
}

TEST(LossScaleOptimizerTest, ConfigsAreThoseOfKeras) {
  const Config config = parse_json(R"({"class_name": "LossScaleOptimizer", "config": {"name": "s",
      "inner_optimizer": {"class_name": "SGD", "config": {"momentum": 0.5}},
      "initial_scale": 16.0, "dynamic_growth_steps": 3, "clipnorm": null, "dynamic": true}})");
  const OptimizerHandle read = optimizers::deserialize(config);
  const Config written = read->get_config();
  std::vector<std::string> keys;
  for (const auto& [key, _] : written.entries()) keys.push_back(key);
  EXPECT_EQ(keys, (std::vector<std::string>{"name", "inner_optimizer", "initial_scale",
                                            "dynamic_growth_steps"}));
  EXPECT_EQ(written["inner_optimizer"]["config"]["momentum"].number(), 0.5);
  EXPECT_EQ(written["initial_scale"].number(), 16);
  std::vector<std::string> names;
  for (const Variable& v : read->variables({variable()})) names.push_back(v.path());
  EXPECT_EQ(names, (std::vector<std::string>{"s/iteration", "s/learning_rate", "s/step_counter",
                                             "s/dynamic_scale", "sgd/iteration", "w/momentum"}));
}

TEST(LossScaleOptimizerTest, RejectsInvalidOptions) {
  using optimizers::LossScaleOptimizer;
  const optimizers::SGD sgd({});
  EXPECT_THROW(LossScaleOptimizer({.inner_optimizer = sgd, .initial_scale = 0}), ValueError);
  EXPECT_THROW(LossScaleOptimizer({.inner_optimizer = sgd, .dynamic_growth_steps = 0}), ValueError);
  EXPECT_THROW(
      LossScaleOptimizer({.inner_optimizer = LossScaleOptimizer({.inner_optimizer = sgd})}),
      ValueError);
  EXPECT_THROW(LossScaleOptimizer({}), ValueError);
  const auto message = [](const std::string& key, const Config& value) {
    return message_of<ValueError>([&] {
      optimizers::deserialize(Config::dict(
          {{"class_name", "LossScaleOptimizer"},
           {"config", Config::dict({{"inner_optimizer", Config::dict({{"class_name", "SGD"},
                                                                      {"config", Config::dict()}})},
                                    {key, value}})}}));
    });
  };
  EXPECT_THAT(message("clipnorm", 1.0), HasSubstr("'clipnorm' must not be 1.0; set it in"));
  EXPECT_THAT(message("dynamic", false), HasSubstr("loss_scale_factor is constant"));
}

TEST(LossScaleOptimizerTest, VirtualVariablesAreRejected) {
  const optimizers::LossScaleOptimizer optimizer({.inner_optimizer = optimizers::SGD({})});
  const Variable hidden = Variable::virtual_trainable("tables");
  EXPECT_THAT(message_of<NotImplementedError>([&] { optimizer->check_variables({hidden}); }),
              HasSubstr("auto_scale_loss = false"));
}

}  // namespace keel::loss_scale_test
