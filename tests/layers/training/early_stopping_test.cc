#include "layers/training/early_stopping.h"

#include <limits>

#include "gtest/gtest.h"

#include "layers/core/dense.h"
#include "layers/sequential.h"
#include "layers/training/lambda_callback.h"
#include "optimizers/sgd.h"

namespace keel {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

// A model whose bias is 1 after the first epoch, 2 after the second, ...
struct Counter {
  Counter() : bias(layers::Dense({.units = 1, .kernel_initializer = "zeros"})), model({}) {
    model->add(bias);
    model->compile({.optimizer = optimizers::SGD({.learning_rate = 0}), .loss = "mse"});
  }
  // The epochs that run while "val" takes these values.
  History run(const callbacks::EarlyStopping& stopping, const std::vector<double>& values) {
    const auto play = callbacks::Lambda({.on_epoch_end = [&](int64_t epoch, Logs& logs) {
      logs["val"] = values[epoch];
      bias->bias().assign(Tensor::from<float>({static_cast<float>(epoch + 1)}, {1}));
    }});
    return model->fit(Tensor::zeros({1, 1}), Tensor::zeros({1}),
                      {.epochs = static_cast<int64_t>(values.size()),
                       .verbose = Verbose::kSilent,
                       .callbacks = {play, stopping}});
  }
  float value() const { return bias->bias().read().item<float>(); }

  layers::Dense bias;
  Sequential model;
};

int64_t epochs_of(const EarlyStoppingOptions& options, const std::vector<double>& values) {
  Counter counter;
  return static_cast<int64_t>(
      counter.run(callbacks::EarlyStopping(options), values).epochs().size());
}

TEST(EarlyStoppingTest, StopsAfterPatienceEpochsWithoutGettingBetter) {
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 2}, {3, 2, 2.5, 2.2, 1, 1}), 4);
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 3}, {3, 2, 2.5, 2.2, 1, 1}), 6);
}

TEST(EarlyStoppingTest, WithoutPatienceTheFirstWorseEpochIsTheLast) {
  EXPECT_EQ(epochs_of({.monitor = "val"}, {3, 2, 2.5, 1}), 3);
}

TEST(EarlyStoppingTest, SmallChangesAreNone) {
  EXPECT_EQ(epochs_of({.monitor = "val", .min_delta = 0.5}, {3, 2.9, 1}), 2);
  EXPECT_EQ(epochs_of({.monitor = "val", .min_delta = -0.5}, {3, 2.4, 2}), 3);
}

TEST(EarlyStoppingTest, ModeSaysWhatIsBetter) {
  EXPECT_EQ(epochs_of({.monitor = "val", .mode = "max"}, {1, 2, 3, 2, 5}), 4);
  EXPECT_EQ(epochs_of({.monitor = "val", .mode = "min"}, {1, 2, 3, 2, 5}), 2);
}

TEST(EarlyStoppingTest, AutoGoesByTheName) {
  Counter counter;
  const callbacks::EarlyStopping stopping({.monitor = "val_auc"});
  const auto play = callbacks::Lambda(
      {.on_epoch_end = [](int64_t epoch, Logs& logs) { logs["val_auc"] = 0.1 * epoch; }});
  const History history =
      counter.model->fit(Tensor::zeros({1, 1}), Tensor::zeros({1}),
                         {.epochs = 4, .verbose = Verbose::kSilent, .callbacks = {play, stopping}});
  EXPECT_EQ(history.epochs().size(), 4u);
}

TEST(EarlyStoppingTest, ABaselineMustBeBeaten) {
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 2, .baseline = 1}, {3, 4, 4, 0.5}), 2);
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 2, .baseline = 5}, {3, 4, 4, 0.5}), 3);
}

TEST(EarlyStoppingTest, EarlyEpochsAreNotLookedAt) {
  EXPECT_EQ(epochs_of({.monitor = "val", .start_from_epoch = 3}, {1, 2, 3, 4, 5, 6}), 5);
}

TEST(EarlyStoppingTest, NaNIsNeverBetter) {
  EXPECT_EQ(epochs_of({.monitor = "val", .patience = 1}, {kNaN, kNaN, 1}), 2);
}

TEST(EarlyStoppingTest, BestWeightsComeBack) {
  Counter counter;
  const callbacks::EarlyStopping stopping(
      {.monitor = "val", .patience = 2, .restore_best_weights = true});
  counter.run(stopping, {3, 1, 2, 2, 2});
  EXPECT_EQ(counter.value(), 2);
  EXPECT_EQ(stopping->best_epoch(), 1);
  EXPECT_EQ(stopping->stopped_epoch(), 3);
}

TEST(EarlyStoppingTest, BestWeightsComeBackWithoutAStopToo) {
  Counter counter;
  const callbacks::EarlyStopping stopping(
      {.monitor = "val", .patience = 9, .restore_best_weights = true});
  counter.run(stopping, {3, 1, 2});
  EXPECT_EQ(counter.value(), 2);
  EXPECT_FALSE(stopping->stopped_epoch());
}

TEST(EarlyStoppingTest, WeightsStayUnlessAskedFor) {
  Counter counter;
  counter.run(callbacks::EarlyStopping({.monitor = "val", .patience = 1}), {1, 2, 2});
  EXPECT_EQ(counter.value(), 2);
}

TEST(EarlyStoppingTest, ANameThatIsNotLoggedIsRefused) {
  try {
    epochs_of({.monitor = "val_loss"}, {1, 2});
    FAIL();
  } catch (const ValueError& error) {
    EXPECT_NE(std::string(error.what()).find("loss, val"), std::string::npos) << error.what();
  }
}

TEST(EarlyStoppingTest, BadOptionsAreRefused) {
  EXPECT_THROW(callbacks::EarlyStopping({.mode = "up"}), ValueError);
  EXPECT_THROW(callbacks::EarlyStopping({.patience = -1}), ValueError);
}

}  // namespace
}  // namespace keel
