#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/support/layer_contract.h"

namespace keel::activity_regularization_test {

using layers::ActivityRegularization;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(ActivityRegularizationTest, AddsAPenaltyOnItsInput) {
  const ActivityRegularization layer({.l1 = 0.5, .l2 = 0.25});
  const Tensor x = Tensor::from<float>({1, -2}, {1, 2});
  EXPECT_EQ(layer(x).id(), x.id());
  ASSERT_EQ(layer->losses().size(), 1u);
  EXPECT_FLOAT_EQ(layer->losses()[0].item<float>(), 0.5F * 3 + 0.25F * 5);
}

// Keras divides by the batch size since 3.14: (0.5 (1 + 2 + 3 + 6) + 0.25 (1 + 4 + 9 + 36)) / 2.
TEST(ActivityRegularizationTest, ThePenaltyIsDividedByTheBatch) {
  const ActivityRegularization layer({.l1 = 0.5, .l2 = 0.25});
  layer(Tensor::from<float>({1, -2, 3, -6}, {2, 2}));
  EXPECT_FLOAT_EQ(layer->losses()[0].item<float>(), (0.5F * 12 + 0.25F * 50) / 2);
  layer(Tensor::zeros({0, 2}));
  EXPECT_EQ(layer->losses()[0].item<float>(), 0);
}

// 1 + 4 + 9 + 16 + 25 divided by five rows, regardless of their split over the replicas.
TEST(ActivityRegularizationTest, ThePenaltyDoesNotDependOnTheReplicas) {
  for (const int cores : {1, 2, 4}) {
    distribute::TPUStrategy strategy({.num_cores = cores});
    const auto scope = strategy.scope();
    const Sequential model({.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 1}}),
                                       ActivityRegularization({.l2 = 1})}});
    model->compile({.optimizer = "sgd", .loss = "mse"});
    const Tensor x = Tensor::from<float>({1, 2, 3, 4, 5}, {5, 1});
    const Logs logs = model->evaluate(x, x, {.batch_size = 5});
    EXPECT_NEAR(logs.at("loss"), 55.0 / 5, 1e-5) << cores;
  }
}

TEST(ActivityRegularizationTest, KeepsMasks) {
  const Tensor x = Tensor::zeros({1, 2}).with_mask(Tensor::full<bool>({1}, true));
  EXPECT_TRUE(ActivityRegularization({})(x).mask());
}

TEST(ActivityRegularizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "ActivityRegularization",
                         .config = R"({"l1": 0.1, "l2": 0.2})",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::activity_regularization_test
