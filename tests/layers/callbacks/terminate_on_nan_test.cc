#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/optimizers/sgd.h>

namespace keel::terminate_on_nan_test {

constexpr float kNaN = std::numeric_limits<float>::quiet_NaN();

// Batches of two rows, of which the third has a NaN in one row.
const Tensor& features() {
  static const Tensor value = Tensor::from<float>({1, 1, 1, 1, 1, kNaN, 1, 1}, {8, 1});
  return value;
}

TEST(TerminateOnNaNTest, EndsFitAndLeavesTheWeightsAlone) {
  distribute::CPUStrategy cpu;
  distribute::TPUStrategy tpu({.num_cores = 2});
  for (distribute::Strategy* strategy : std::initializer_list<distribute::Strategy*>{&cpu, &tpu}) {
    const auto scope = strategy->scope();
    const Sequential model({.layers = {layers::Dense({.units = 1})}});
    model->compile({.optimizer = optimizers::SGD({}), .loss = "mse", .metrics = {"mae"}});
    const History history = model->fit(features(), Tensor::zeros({8, 1}),
                                       {.epochs = 3,
                                        .batch_size = 2,
                                        .shuffle = false,
                                        .verbose = Verbose::kSilent,
                                        .callbacks = {callbacks::TerminateOnNaN({})}});
    EXPECT_EQ(history.epochs().size(), 1u);
    EXPECT_TRUE(std::isnan(history["loss"][0]));
    EXPECT_TRUE(std::isfinite(history["mae"][0]));
    EXPECT_EQ(model->optimizer()->iterations(), 2);
    for (const Variable& v : model->weights()) {
      EXPECT_TRUE(std::isfinite(v.read().data<float>()[0]));
    }
    // Without the callback, a NaN loss is an error, before and after such a run.
    EXPECT_THROW(model->fit(features(), Tensor::zeros({8, 1}), {.verbose = Verbose::kSilent}),
                 ValueError);
  }
}

TEST(TerminateOnNaNTest, AnInfiniteLossEndsFit) {
  const Sequential model({.layers = {layers::Dense({.units = 1})}});
  model->compile({.optimizer = optimizers::SGD({}), .loss = "mse"});
  const Tensor huge = Tensor::full<float>({4, 1}, 3e38F);
  const History history = model->fit(huge, huge,
                                     {.epochs = 3,
                                      .batch_size = 2,
                                      .verbose = Verbose::kSilent,
                                      .callbacks = {callbacks::TerminateOnNaN({})}});
  EXPECT_EQ(history.epochs().size(), 1u);
  EXPECT_TRUE(std::isinf(history["loss"][0]));
}

TEST(TerminateOnNaNTest, TheValidationAfterTheStopMayBeNaN) {
  distribute::CPUStrategy cpu;
  distribute::TPUStrategy tpu({.num_cores = 2});
  for (distribute::Strategy* strategy : std::initializer_list<distribute::Strategy*>{&cpu, &tpu}) {
    const auto scope = strategy->scope();
    const Sequential model({.layers = {layers::Dense({.units = 1, .kernel_initializer = "ones"})}});
    model->compile({.optimizer = optimizers::SGD({}), .loss = "mse", .metrics = {"mae"}});
    // An infinite loss makes a weight infinite; infinity times 0 is NaN.
    const Tensor huge = Tensor::full<float>({4, 1}, 3e38F);
    const Tensor zeros = Tensor::zeros({2, 1});
    const FitOptions options = {.epochs = 3,
                                .batch_size = 2,
                                .verbose = Verbose::kSilent,
                                .callbacks = {callbacks::TerminateOnNaN({})},
                                .validation_data = {zeros, zeros}};
    const History history = model->fit(huge, ops::scale(huge, -1), options);
    EXPECT_EQ(history.epochs().size(), 1u);
    EXPECT_TRUE(std::isinf(history["loss"][0]));
    EXPECT_TRUE(std::isnan(history["val_loss"][0]));
    EXPECT_THROW(model->evaluate(zeros, zeros, {.verbose = Verbose::kSilent}), ValueError);
  }
}

}  // namespace keel::terminate_on_nan_test
