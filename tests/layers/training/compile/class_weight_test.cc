#include <cmath>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/training/compile/step_data.h>
#include <keel/optimizers/sgd.h>

namespace keel::class_weight_test {

const ClassWeight& weights() {
  static const ClassWeight value = {{0, 0.5}, {2, 4}};
  return value;
}

TEST(ClassWeightTest, RowsHaveTheWeightsOfTheirClasses) {
  const std::vector<float> expected = {0.5F, 1, 4};
  for (const Tensor& labels :
       {Tensor::from<int64_t>({0, 1, 2}, {3}), Tensor::from<int64_t>({0, 1, 2}, {3, 1}),
        Tensor::from<float>({0.2F, 0.9F, 2.1F}, {3}),
        Tensor::from<float>({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3})}) {
    EXPECT_EQ(class_weight_to_sample_weights(labels, weights()).to_vector<float>(), expected);
  }
  EXPECT_THROW(class_weight_to_sample_weights(Tensor::zeros({2, 2, 2}), weights()), ValueError);
}

Sequential zero_model() {
  const Sequential model({.layers = {layers::Dense({.units = 1, .kernel_initializer = "zeros"})}});
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mse"});
  return model;
}

TEST(ClassWeightTest, FitWeighsTheTrainingButNotTheValidation) {
  const Tensor x = Tensor::zeros({4, 1});
  const Tensor y = Tensor::from<float>({0, 1, 2, 2}, {4, 1});
  distribute::TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const Sequential model = zero_model();
  const FitOptions options = {
      .class_weight = weights(), .verbose = Verbose::kSilent, .validation_data = {x, y}};
  const Logs arrays = model->fit(x, y, options).last();
  EXPECT_NEAR(arrays.at("loss"), (1 + 4 * 4 + 4 * 4) / 4.0, 1e-6);
  EXPECT_NEAR(arrays.at("val_loss"), (1 + 4 + 4) / 4.0, 1e-6);
  const auto batches = data::Dataset::from_tensor_slices(Tensors::tuple({x, y})).batch(3);
  EXPECT_NEAR(model->fit(batches, options).last().at("loss"), 33 / 4.0, 1e-6);
  model->reset_metrics();
  EXPECT_NEAR(model->train_on_batch(x, y, {.class_weight = weights()}).at("loss"), 33 / 4.0, 1e-6);
}

TEST(ClassWeightTest, SampleWeightsAndSeveralOutputsAreRejected) {
  const Sequential model = zero_model();
  const Tensor x = Tensor::zeros({4, 1});
  const FitOptions options = {
      .sample_weight = x, .class_weight = weights(), .verbose = Verbose::kSilent};
  EXPECT_THROW(model->fit(x, x, options), ValueError);
  EXPECT_THROW(model->train_on_batch(x, Tensors::list({x, x}), {.class_weight = weights()}),
               ValueError);
  EXPECT_THROW(model->train_on_batch(x, {}, {.class_weight = weights()}), ValueError);
}

}  // namespace keel::class_weight_test
