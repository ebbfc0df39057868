#include <csignal>

#include <gtest/gtest.h>

#include <keel/layers/callbacks/lambda_callback.h>
#include <keel/layers/callbacks/stopping.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>

namespace keel::terminate_on_signal_test {

struct Counts {
  int64_t batches = 0, epochs = 0;
};

// Runs four epochs of five batches and raises a signal in the third batch of the second epoch.
Counts run(const callbacks::TerminateOnSignal& terminate, int signal) {
  const Sequential model({.layers = {layers::Dense({.units = 1})}});
  model->compile({.optimizer = "sgd", .loss = "mse"});
  Counts out;
  model->fit(
      Tensor::from(std::vector<float>(10, 1.0F), {10, 1}),
      Tensor::from(std::vector<float>(10, 2.0F), {10, 1}),
      {.epochs = 4,
       .batch_size = 2,
       .verbose = Verbose::kSilent,
       .callbacks = {callbacks::Lambda({.on_epoch_end = [&](int64_t, Logs&) { ++out.epochs; },
                                        .on_train_batch_begin =
                                            [&](int64_t) {
                                              if (++out.batches == 8 && signal != 0)
                                                std::raise(signal);
                                            }}),
                     terminate}});
  return out;
}

TEST(TerminateOnSignalTest, FitEndsAfterTheBatchThatIsBeingTrained) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const callbacks::TerminateOnSignal terminate({});
    testing::internal::CaptureStdout();
    const Counts received = run(terminate, signal);
    EXPECT_EQ(testing::internal::GetCapturedStdout(),
              signal_name(signal) + ": training ends after batch 3\n");
    EXPECT_EQ(received.batches, 8);
    EXPECT_EQ(received.epochs, 2);
    EXPECT_EQ(terminate->signal(), signal);
  }
}

TEST(TerminateOnSignalTest, WithoutASignalAllEpochsRun) {
  const callbacks::TerminateOnSignal terminate({});
  const Counts received = run(terminate, 0);
  EXPECT_EQ(received.batches, 20);
  EXPECT_FALSE(terminate->signal());
}

TEST(TerminateOnSignalTest, HandlersAreInstalledDuringFitOnly) {
  struct sigaction before = {};
  struct sigaction after = {};
  sigaction(SIGTERM, nullptr, &before);
  run(callbacks::TerminateOnSignal({}), SIGTERM);
  sigaction(SIGTERM, nullptr, &after);
  EXPECT_EQ(before.sa_handler, after.sa_handler);
}

TEST(TerminateOnSignalTest, TheFrequencyMustBePositive) {
  EXPECT_THROW(callbacks::TerminateOnSignal({.frequency = 0}), ValueError);
}

}  // namespace keel::terminate_on_signal_test
