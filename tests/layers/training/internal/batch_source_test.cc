// Tests layers/training/internal/predict_step.cc.
#include <keel/layers/training/internal/batch_source.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/callbacks.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/optimizers/sgd.h>

namespace keel::batch_source_test {

using data::Dataset;
using testing::HasSubstr;

// y = x for x from 1 to `rows`, one row per batch.
Dataset counting(int64_t rows) {
  Tensor x = Tensor::uninitialized({rows, 1}, DType::kFloat32);
  for (int64_t i = 0; i < rows; ++i) x.mutable_data<float>()[i] = static_cast<float>(i + 1);
  return Dataset::from_tensor_slices(Tensors::tuple({x, x})).batch(1);
}

// Predicts 0, so that its mean absolute error on counting() is the mean of the numbers.
Sequential zero_model() {
  Sequential model({.layers = {layers::Dense({.units = 1, .kernel_initializer = "zeros"})}});
  model->compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mae"});
  return model;
}

TEST(BatchSourceTest, PredictEndsWithTheDataAndWarns) {
  const Sequential model = zero_model();
  testing::internal::CaptureStderr();
  const Tensors out = model->predict(counting(3), {.verbose = Verbose::kSilent, .steps = 5});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("Model.predict: the dataset ended after 3 of 5 steps"));
  EXPECT_EQ(out.tensor().shape(), Shape({3, 1}));
  testing::internal::CaptureStderr();
  model->predict(counting(3), {.verbose = Verbose::kSilent, .steps = 3});
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(BatchSourceTest, EvaluateEndsWithTheDataAndWarns) {
  const Sequential model = zero_model();
  testing::internal::CaptureStderr();
  const Logs logs = model->evaluate(counting(3), {.verbose = Verbose::kSilent, .steps = 4});
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("Model.evaluate: the dataset ended after 3 of 4 steps"));
  EXPECT_EQ(logs.at("loss"), 2);  // mean of 1 2 3, not of 1 2 3 1
}

TEST(BatchSourceTest, ValidationRestartsEachTime) {
  const History history = zero_model()->fit(counting(1), {.epochs = 3,
                                                          .verbose = Verbose::kSilent,
                                                          .validation_data = counting(5),
                                                          .validation_steps = 2});
  EXPECT_EQ(history["val_loss"], (std::vector<double>{1.5, 1.5, 1.5}));
}

TEST(BatchSourceTest, ValidationEndsWithItsDataAndWarnsOnce) {
  testing::internal::CaptureStderr();
  const History history = zero_model()->fit(counting(1), {.epochs = 2,
                                                          .verbose = Verbose::kSilent,
                                                          .validation_data = counting(2),
                                                          .validation_steps = 3});
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "Model.fit, validation: the dataset ended after 2 of 3 steps; call repeat() on it or "
            "reduce the number of steps\n");
  EXPECT_EQ(history["val_loss"], (std::vector<double>{1.5, 1.5}));
}

TEST(BatchSourceTest, ADatasetWithoutBatchesIsRejected) {
  const Sequential model = zero_model();
  const Dataset none = counting(1).take(0);
  EXPECT_THROW(model->predict(none, {.verbose = Verbose::kSilent, .steps = 1}), ValueError);
  EXPECT_THROW(model->fit(none, {.verbose = Verbose::kSilent, .steps_per_epoch = 1}), ValueError);
  EXPECT_THROW(model->fit(none, {.verbose = Verbose::kSilent}), ValueError);
}

}  // namespace keel::batch_source_test
