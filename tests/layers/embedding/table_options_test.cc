// Tests trainable, l2, max_norm and the partition of tables against sums by hand, for tables in
// engines and for tables that are variables.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/tables/internal/tracked_tables.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"
#include "tests/support/two_tables.h"

namespace keel::table_options_test {

using namespace two_tables;  // NOLINT: the tables are what these tests are about
using testing::HasSubstr;
using testing_support::message_of;

TEST(TableOptionsTest, TablesThatAreNotTrainedKeepTheirRows) {
  const Tables expected = after_sgd(0.5, 2, [](std::vector<Rows>& g) { g[0].clear(); });
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::Adagrad({.learning_rate = 0.5}), {.trainable = false}, {},
                      {});
    const std::vector<float> before = training.table(0), trained_before = training.table(1);
    training.step();
    EXPECT_EQ(training.table(0), before);
    EXPECT_NE(training.table(1), trained_before);
    Training sgd(holder, optimizers::SGD({.learning_rate = 0.5}), {.trainable = false});
    sgd.step();
    sgd.step();
    sgd.expect_tables(expected);
  }
}

TEST(TableOptionsTest, TablesThatAreNotTrainedHaveNoSlotsAndNeedNoOptimizer) {
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    const Training training(holder, optimizers::SGD({}), {.trainable = false}, {},
                            tpu::Adam{.learning_rate = 0.5});
    std::vector<std::string> names = training.state_names();
    EXPECT_THAT(names, testing::Contains(HasSubstr("second/momenta")));
    for (const std::string& name : names) EXPECT_THAT(name, testing::Not(HasSubstr("first/")));
  }
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const layers::TPUEmbedding frozen(
      {.feature_config = FeatureConfig{
           .table = make_table({.vocabulary_size = 4, .dim = 1, .trainable = false})}});
  frozen->build(Specs(TensorSpec{.shape = {1}, .dtype = DType::kInt64}));
  EXPECT_EQ(frozen->embedding_tables()[0].second.shape(), Shape({4, 1}));
  tpu::TPUEmbedding mid_level(
      FeatureConfig{.table = make_table({.vocabulary_size = 4, .dim = 1, .trainable = false})}, {});
  EXPECT_EQ(mid_level.tracked()->state_entries().size(), 1U);
}

// Adds 2 l2 w to the gradients of the rows that occur, and limits the norms of these rows.
Tables after_regularized_sgd(double rate, double l2, double max_norm) {
  Tables tables = starting_tables();
  for (int i = 0; i < 2; ++i) {
    const std::vector<Rows> all = gradients();
    for (int t = 0; t < 2; ++t) {
      for (const auto& [id, g] : all[t]) {
        Row& w = tables[t][id];
        double sum = 0;
        for (size_t d = 0; d < g.size(); ++d) {
          w[d] -= rate * (g[d] + 2 * l2 * w[d]);
          sum += w[d] * w[d];
        }
        if (max_norm == 0 || std::sqrt(sum) <= max_norm) continue;
        for (double& x : w) x *= max_norm / std::sqrt(sum);
      }
    }
  }
  return tables;
}

TEST(TableOptionsTest, PenaltiesAndLimitsConcernTheRowsOfTheBatch) {
  for (const auto& [l2, max_norm] :
       {std::pair(0.3, 0.0), std::pair(0.0, 0.9), std::pair(0.2, 1.1)}) {
    const Tables expected = after_regularized_sgd(0.25, l2, max_norm);
    const TableConfig config = {.l2 = l2, .max_norm = max_norm};
    for (const Holder& holder : kHolders) {
      SCOPED_TRACE(testing::PrintToString(holder));
      Training training(holder, optimizers::SGD({.learning_rate = 0.25}), config, config);
      training.step();
      training.step();
      training.expect_tables(expected);
      // No sample has id 3 of the second table, whose norm is 1.56.
      const std::vector<float> second = training.table(1);
      const Row start = starting_tables()[1][3];
      for (int64_t d = 0; d < kDims[1]; ++d) {
        EXPECT_EQ(second[3 * kDims[1] + d], static_cast<float>(start[d]));
      }
    }
  }
}

TEST(TableOptionsTest, PenaltiesAreAddedAfterClipping) {
  Tables expected = starting_tables();
  std::vector<Rows> all = gradients();
  for (int t = 0; t < 2; ++t) {
    scale(all[t], 0.5 / std::sqrt(squares(all[t])));
    for (const auto& [id, g] : all[t]) {
      for (size_t d = 0; d < g.size(); ++d) expected[t][id][d] -= g[d] + 0.4 * expected[t][id][d];
    }
  }
  const TableConfig config = {.l2 = 0.2};
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({.learning_rate = 1, .clipnorm = 0.5}), config,
                      config);
    training.step();
    training.expect_tables(expected);
  }
}

TEST(TableOptionsTest, OptionsOfTablesAreCheckedAndWrittenToConfigs) {
  EXPECT_THAT(
      message_of<ValueError>([] { make_table({.vocabulary_size = 2, .dim = 2, .l2 = -1}); }),
      HasSubstr("l2 must be finite and not negative"));
  EXPECT_THROW(make_table({.vocabulary_size = 2, .dim = 2, .max_norm = NAN}), ValueError);
  const Training training(kCpu, optimizers::SGD({}), {.trainable = false},
                          {.l2 = 0.25, .max_norm = 2});
  const auto copy = TPUEmbeddingLayer::from_config(training.layer()->get_config());
  const std::vector<FeatureConfig> features = flatten(copy->feature_config());
  EXPECT_FALSE(features[0].table->trainable);
  EXPECT_TRUE(features[2].table->trainable);
  EXPECT_EQ(features[2].table->l2, 0.25);
  EXPECT_EQ(features[2].table->max_norm, 2);
}

TEST(TableOptionsTest, ThePartitionOfRowsChangesNoResult) {
  for (const Holder& holder : {kCpu, Holder{.hosts = 2, .cores = 2}, Holder{.hosts = 3}}) {
    SCOPED_TRACE(testing::PrintToString(holder));
    const OptimizerHandle adagrad = optimizers::Adagrad({.learning_rate = 0.2});
    Training div(holder, adagrad, {}, {}, tpu::Adagrad{.learning_rate = 0.2});
    Training mod(holder, adagrad, {}, {}, tpu::Adagrad{.learning_rate = 0.2}, false, "mod");
    for (int i = 0; i < 2; ++i) {
      div.step();
      mod.step();
    }
    for (int t = 0; t < 2; ++t) EXPECT_EQ(mod.table(t), div.table(t));
    const auto copy = TPUEmbeddingLayer::from_config(mod.layer()->get_config());
    EXPECT_EQ(copy->get_config()["partition_strategy"].string(), "mod");
  }
  EXPECT_THAT(
      message_of<ValueError>([] {
        layers::TPUEmbedding(
            {.feature_config = FeatureConfig{.table = make_table({.vocabulary_size = 2, .dim = 1})},
             .partition_strategy = "row"});
      }),
      HasSubstr("partition_strategy must be div or mod, received 'row'"));
}

}  // namespace keel::table_options_test
