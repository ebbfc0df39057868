#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/recurrent/simple_rnn.h>
#include <keel/layers/registry.h>
#include <keel/layers/wrappers/wrappers.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::time_distributed_test {

using layers::Dense;
using layers::TimeDistributed;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Floats = std::vector<float>;

TEST(TimeDistributedTest, AppliesTheLayerToEachStep) {
  const Dense dense({.units = 2, .kernel_initializer = "ones"});
  const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5, 6}, {1, 3, 2});
  const Tensor y = TimeDistributed({.layer = dense})(x);
  EXPECT_EQ(y.shape(), Shape({1, 3, 2}));
  EXPECT_EQ(y.to_vector<float>(), Floats({3, 3, 7, 7, 11, 11}));
  EXPECT_EQ(dense->kernel().shape(), Shape({2, 2}));
}

TEST(TimeDistributedTest, AcceptsUnknownStepsInGraphs) {
  const Tensor x = layers::input({.shape = {kUnknown, 2}});
  const Tensor y = TimeDistributed({.layer = Dense({.units = 3, .kernel_initializer = "ones"})})(x);
  EXPECT_EQ(y.shape(), Shape({kUnknown, kUnknown, 3}));
  const Functional model({.inputs = x, .outputs = y});
  EXPECT_EQ(model(Tensor::from<float>({1, 2}, {1, 1, 2})).to_vector<float>(), Floats({3, 3, 3}));
}

TEST(TimeDistributedTest, EachStepHasItsPartOfTheMask) {
  // Two sequences of two steps, where each step is itself a sequence of two.
  const layers::SimpleRNN adder({.units = 1,
                                 .activation = "linear",
                                 .kernel_initializer = "ones",
                                 .recurrent_initializer = "ones"});
  const Tensor mask = Tensor::from<bool>({true, false, true, true}, {1, 2, 2});
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {1, 2, 2, 1}).with_mask(mask);
  const Tensor y = TimeDistributed({.layer = adder})(x);
  EXPECT_EQ(y.to_vector<float>(), Floats({1, 7}));
}

TEST(TimeDistributedTest, TheResultHasTheMaskOfTheSteps) {
  const Tensor x = Tensor::zeros({1, 2, 3}).with_mask(Tensor::from<bool>({true, false}, {1, 2}));
  const Tensor y = TimeDistributed({.layer = Dense({.units = 1})})(x);
  EXPECT_EQ(y.mask().to_vector<bool>(), std::vector({true, false}));
}

TEST(TimeDistributedTest, BatchStatisticsAreComputedPerStep) {
  const TimeDistributed layer(
      {.layer = layers::BatchNormalization({.epsilon = 0, .center = false, .scale = false})});
  const Tensor x = Tensor::from<float>({1, 10, 3, 30}, {2, 2, 1});
  EXPECT_EQ(layer(x, {.training = true}).to_vector<float>(), Floats({-1, -1, 1, 1}));
}

TEST(TimeDistributedTest, WeightsAreNamedByBothLayers) {
  const TimeDistributed layer({.layer = Dense({.units = 2, .name = "dense"}), .name = "steps"});
  layer(Tensor::zeros({1, 2, 3}));
  EXPECT_EQ(layer->weights()[0].path(), "steps/dense/kernel");
  EXPECT_EQ(layer->sublayer_attributes(), std::vector<std::string>{"layer"});
}

TEST(TimeDistributedTest, ConfigsKeepTheLayer) {
  const TimeDistributed layer({.layer = Dense({.units = 2, .name = "dense"}), .name = "steps"});
  const Config config = layers::serialize(*layer);
  EXPECT_EQ(config["config"]["layer"]["class_name"].string(), "Dense");
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  EXPECT_EQ(to_json(layers::serialize(*copy)), to_json(config));
}

TEST(TimeDistributedTest, RejectsInputsWithoutSteps) {
  EXPECT_THROW(TimeDistributed(TimeDistributedOptions{}), ValueError);
  const TimeDistributed layer({.layer = Dense({.units = 2})});
  EXPECT_THROW(layer(Tensor::zeros({2, 3})), ValueError);
  EXPECT_THROW(layer(Tensor::zeros({2, 0, 3})), ValueError);
}

TEST(TimeDistributedTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(
      TimeDistributed({.layer = Dense({.units = 2, .activation = "tanh", .dtype = DType::kFloat64}),
                       .dtype = DType::kFloat64}),
      testing_support::distinct_doubles({2, 2, 2}));
}

TEST(TimeDistributedTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "TimeDistributed",
                         .config = R"({"layer": {"class_name": "Dense", "config": {"units": 4}}})",
                         .inputs = float_spec({2, 5, 3}),
                         .output = float_spec({2, 5, 4}),
                         .trainable_weights = 2,
                         .weights = 2});
}

}  // namespace keel::time_distributed_test
