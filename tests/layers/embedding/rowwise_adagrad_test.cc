// Tests row-wise Adagrad of tables against its formula.
#include <keel/optimizers/embedding/rowwise_adagrad.h>

#include <cmath>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/expectations.h"
#include "tests/support/two_tables.h"

namespace keel::rowwise_adagrad_test {

using namespace two_tables;  // NOLINT: the tables are what these tests are about
using testing_support::expect_near;

// a += mean(g^2); w -= rate g / (sqrt(a) + epsilon).
Tables after_rowwise_adagrad(double rate, double initial, double epsilon, int steps,
                             std::vector<std::map<int64_t, double>>& slots) {
  Tables out = starting_tables();
  slots.assign(2, {});
  for (int i = 0; i < steps; ++i) {
    const std::vector<Rows> all = gradients();
    for (int t = 0; t < 2; ++t) {
      for (const auto& [id, g] : all[t]) {
        double& a = slots[t].try_emplace(id, initial).first->second;
        double sum = 0;
        for (const double x : g) sum += x * x;
        a += sum / static_cast<double>(g.size());
        for (size_t d = 0; d < g.size(); ++d) {
          out[t][id][d] -= rate * g[d] / (std::sqrt(a) + epsilon);
        }
      }
    }
  }
  return out;
}

TEST(RowwiseAdagradTest, KeepsOneAccumulatorPerRow) {
  std::vector<std::map<int64_t, double>> slots;
  const Tables expected = after_rowwise_adagrad(0.3, 0.2, 0.05, 3, slots);
  for (const Holder& holder : kEngines) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({}), {}, {},
                      tpu::RowwiseAdagrad{
                          .learning_rate = 0.3, .initial_accumulator_value = 0.2, .epsilon = 0.05});
    for (int i = 0; i < 3; ++i) training.step();
    training.expect_tables(expected);
    const Tensor a = fixture::state_of(training.layer(), "first/accumulators");
    ASSERT_EQ(a.shape(), Shape({kRows[0], 1}));
    for (int64_t r = 0; r < kRows[0]; ++r) {
      const double value = slots[0].contains(r) ? slots[0][r] : 0.2;
      EXPECT_NEAR(a.data<float>()[r], value, 1e-5 * value);
    }
  }
}

TEST(RowwiseAdagradTest, HalfTablesStayNearTheFloatTables) {
  std::vector<std::map<int64_t, double>> slots;
  const Tables expected = after_rowwise_adagrad(0.3, 0.2, 0.05, 2, slots);
  const TableConfig half = {.storage_dtype = "bfloat16"};
  Training training(
      {.cores = 2}, optimizers::SGD({}), half, half,
      tpu::RowwiseAdagrad{.learning_rate = 0.3, .initial_accumulator_value = 0.2, .epsilon = 0.05});
  for (int i = 0; i < 2; ++i) training.step();
  training.expect_tables(expected, 0.02);  // bfloat16 has 8 bits
  const Tensor a = fixture::state_of(training.layer(), "second/accumulators");
  EXPECT_NEAR(a.data<float>()[2], slots[1][2], 1e-5) << "slots are float32";
}

TEST(RowwiseAdagradTest, StateMovesBetweenEnginesAndVariables) {
  const tpu::RowwiseAdagrad rowwise = {.learning_rate = 0.3, .initial_accumulator_value = 0.2};
  Training trained({.hosts = 2, .cores = 2}, optimizers::SGD({}), {}, {}, rowwise);
  trained.step();
  const Training host(kCpu, optimizers::SGD({}), {}, {}, rowwise);
  EXPECT_EQ(fixture::state_of(host.layer(), "first/accumulators").to_vector<float>(),
            std::vector<float>(kRows[0], 0.2F));
  EXPECT_EQ(fixture::state_of(host.layer(), "second/accumulators").shape(), Shape({kRows[1], 1}));
  std::vector<std::string> names = host.state_names();
  for (const std::string& name : trained.state_names()) {
    EXPECT_THAT(names, testing::Contains(name));
  }
  // Restored into other engines, both continue alike.
  Training other({.cores = 1}, optimizers::SGD({}), {}, {}, rowwise);
  for (const StateEntry& entry : trained.layer()->state_entries()) {
    for (const StateEntry& to : other.layer()->state_entries()) {
      if (to.name == entry.name) to.set(entry.get());
    }
  }
  trained.step();
  other.step();
  expect_near(other.table(0), trained.table(0), {.relative = 1e-6});
}

TEST(RowwiseAdagradTest, OptionsAreWrittenToConfigs) {
  const EmbeddingOptimizer optimizer =
      tpu::RowwiseAdagrad{.learning_rate = 0.25, .epsilon = 0.125, .clipnorm = 3};
  EmbeddingOptimizer decoded;
  decode(encode(optimizer), decoded);
  EXPECT_EQ(decoded, optimizer);
  EXPECT_EQ(decoded->clipnorm, 3);
  EXPECT_THROW(EmbeddingOptimizer(tpu::RowwiseAdagrad{.epsilon = -1}), ValueError);
}

}  // namespace keel::rowwise_adagrad_test
