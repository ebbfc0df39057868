// Processes of a job, simulated by threads, that train with different options.
#include <keel/layers/training/internal/process_agreement.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/losses/regression.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/optimizers/adam.h>

#include "tests/distribute/fake_processes.h"

namespace keel::process_agreement_test {

using distribute::FakeJob;
using distribute::ProcessGroup;
using testing::HasSubstr;
using testing::StartsWith;

struct Differences {
  double learning_rate = 0.5, dropout = 0.25;
  std::string activation = "relu", loss = "mse";
  bool trainable = true;
  int64_t batch_size = 4;
};

// Returns what fit throws in each of two processes; the second process has these options.
std::vector<std::string> errors_of_fit(const Differences& second) {
  FakeJob job(2);
  return job.run([&](ProcessGroup& group) {
    distribute::TPUStrategy strategy({.num_hosts = 2, .num_cores = 1}, group);
    const auto scope = strategy.scope();
    const Differences options = group.rank() == 0 ? Differences{} : second;
    const Sequential model(
        {.layers = {
             layers::Dense({.units = 2, .activation = options.activation, .name = "dense_7"}),
             layers::Dropout({.rate = options.dropout}),
             layers::Dense({.units = 1, .kernel_initializer = "zeros", .name = "last"})}});
    model->sublayers()[0]->set_trainable(options.trainable);
    model->compile({.optimizer = optimizers::Adam({.learning_rate = options.learning_rate}),
                    .loss = options.loss});
    // With zero epochs, only the checks before the first epoch run.
    model->fit(Tensor::zeros({4, 1}), Tensor::zeros({4, 1}),
               {.epochs = 0, .batch_size = options.batch_size, .verbose = Verbose::kSilent});
  });
}

void expect_error(const Differences& second, const std::string& text) {
  for (const std::string& error : errors_of_fit(second)) {
    EXPECT_THAT(error, HasSubstr(text));
    EXPECT_THAT(error, StartsWith("Model.fit: rank 1 has"));
  }
}

TEST(ProcessAgreementTest, ProcessesWithTheSameOptionsTrain) {
  EXPECT_EQ(errors_of_fit({}), (std::vector<std::string>{"", ""}));
}

TEST(ProcessAgreementTest, NamesTheOptionThatDiffersInAllProcesses) {
  expect_error({.learning_rate = 0.125}, "learning_rate = 0.125, rank 0 has compile: optimizer");
  expect_error({.dropout = 0.75},
               "has Dropout (layer 3): rate = 0.75, rank 0 has Dropout (layer 3)"
               ": rate = 0.25; all processes");
  expect_error({.activation = "tanh"},
               "Dense (layer 2): activation = tanh, rank 0 has Dense "
               "(layer 2): activation = relu");
  expect_error({.loss = "mae"}, "rank 0 has compile: loss");
  expect_error({.trainable = false}, "trainable = false, rank 0 has");
  expect_error({.batch_size = 2}, "has fit: batch_size = 2, rank 0 has fit: batch_size = 4");
}

}  // namespace keel::process_agreement_test
