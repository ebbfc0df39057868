// Tests clipnorm and global_clipnorm of the optimizers of tables against sums by hand, for tables
// in engines and for tables that are variables. Tests
// distribute/embedding/internal/row_updater_norms.cc.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"
#include "tests/support/two_tables.h"

namespace keel::table_norms_test {

using namespace two_tables;  // NOLINT: the tables are what these tests are about
using testing::HasSubstr;
using testing_support::expect_near;
using testing_support::message_of;

TEST(TableNormsTest, ClipnormBoundsTheGradientOfEachTable) {
  const std::vector<Rows> all = gradients();
  ASSERT_GT(std::sqrt(squares(all[0])), 2);
  ASSERT_LT(std::sqrt(squares(all[1])), 2) << "this table is not clipped";
  const Tables expected = after_sgd(0.5, 2, [](std::vector<Rows>& g) {
    for (Rows& rows : g) scale(rows, 2 / std::max(2.0, std::sqrt(squares(rows))));
  });
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({.learning_rate = 0.5, .clipnorm = 2}));
    training.step();
    training.step();
    training.expect_tables(expected);
  }
}

TEST(TableNormsTest, ClipvalueBoundsTheElementsOfTheSummedRows) {
  const Tables expected = after_sgd(0.5, 2, [](std::vector<Rows>& g) {
    for (Rows& rows : g) {
      for (auto& [id, row] : rows) {
        for (auto& element : row) element = std::clamp<double>(element, -0.4, 0.4);
      }
    }
  });
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({.learning_rate = 0.5, .clipvalue = 0.4}));
    training.step();
    training.step();
    training.expect_tables(expected);
  }
}

TEST(TableNormsTest, GlobalClipnormBoundsTheGradientsOfAllTablesTogether) {
  const Tables expected = after_sgd(0.5, 2, [](std::vector<Rows>& g) {
    const double factor = 1.5 / std::max(1.5, std::sqrt(squares(g[0]) + squares(g[1])));
    for (Rows& rows : g) scale(rows, factor);
  });
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::SGD({.learning_rate = 0.5, .global_clipnorm = 1.5}));
    training.step();
    training.step();
    training.expect_tables(expected);
  }
}

// The tables are dynamic, or one of them is.
const std::vector<std::pair<TableConfig, TableConfig>> kDynamicTables = {
    {{.dynamic = DynamicVocabulary{}}, {.dynamic = DynamicVocabulary{}}},
    {{.dynamic = DynamicVocabulary{}}, {}},
    {{}, {.dynamic = DynamicVocabulary{}}}};
const Holder kDynamicHolders[] = {
    kCpu, {.cores = 1}, {.cores = 2}, {.hosts = 2, .cores = 1}, {.hosts = 2, .cores = 2}};

TEST(TableNormsTest, D041NormsOfDynamicTablesAreThoseOfTheStaticTwin) {
  const Tables each = after_sgd(0.5, 2, [](std::vector<Rows>& g) {
    for (Rows& rows : g) scale(rows, 2 / std::max(2.0, std::sqrt(squares(rows))));
  });
  const Tables together = after_sgd(0.5, 2, [](std::vector<Rows>& g) {
    const double factor = 1.5 / std::max(1.5, std::sqrt(squares(g[0]) + squares(g[1])));
    for (Rows& rows : g) scale(rows, factor);
  });
  for (const Holder& holder : kDynamicHolders) {
    for (const auto& [first, second] : kDynamicTables) {
      SCOPED_TRACE(testing::PrintToString(holder));
      Training clipped(holder, optimizers::SGD({.learning_rate = 0.5, .clipnorm = 2}), first,
                       second);
      clipped.step();
      clipped.step();
      clipped.expect_tables(each);
    }
    for (const auto& [first, second] : kDynamicTables) {
      SCOPED_TRACE(testing::PrintToString(holder));
      Training clipped(holder, optimizers::SGD({.learning_rate = 0.5, .global_clipnorm = 1.5}),
                       first, second);
      clipped.step();
      clipped.step();
      clipped.expect_tables(together);
    }
  }
}

TEST(TableNormsTest, TablesWithOtherOptimizersDoNotShareAGlobalNorm) {
  const Tables expected = after_sgd(1, 1, [](std::vector<Rows>& g) {
    scale(g[0], 1.5 / std::sqrt(squares(g[0])));
    scale(g[1], 0.5 * 0.6 / std::sqrt(squares(g[1])));
  });
  for (const Holder& holder : kEngines) {
    Training training(holder, optimizers::SGD({}),
                      {.optimizer = tpu::SGD{.learning_rate = 1, .global_clipnorm = 1.5}},
                      {.optimizer = tpu::SGD{.learning_rate = 0.5, .global_clipnorm = 0.6}});
    training.step();
    training.expect_tables(expected);
  }
}

TEST(TableNormsTest, NormsAreThoseOfTheSummedRowsForRulesWithSlots) {
  // Adagrad: a = 0.1 + g^2; the epsilon of Keras's is below the tolerance.
  Tables expected = starting_tables();
  std::vector<std::map<int64_t, Row>> slots(2);
  for (int i = 0; i < 3; ++i) {
    std::vector<Rows> all = gradients();
    for (int t = 0; t < 2; ++t) {
      scale(all[t], 0.7 / std::sqrt(squares(all[t])));
      for (const auto& [id, g] : all[t]) {
        Row& a = slots[t].try_emplace(id, g.size(), 0.1).first->second;
        for (size_t d = 0; d < g.size(); ++d) {
          a[d] += g[d] * g[d];
          expected[t][id][d] -= 0.2 * g[d] / std::sqrt(a[d]);
        }
      }
    }
  }
  for (const Holder& holder : kHolders) {
    SCOPED_TRACE(testing::PrintToString(holder));
    Training training(holder, optimizers::Adagrad({.learning_rate = 0.2, .clipnorm = 0.7}));
    for (int i = 0; i < 3; ++i) training.step();
    training.expect_tables(expected, 2e-5);
  }
}

TEST(TableNormsTest, ClippingWorksWithUpdatesOfAllRowsAndWithDelayedUpdates) {
  for (const bool pipelined : {false, true}) {
    std::optional<std::vector<float>> first;
    for (const Holder& holder : kEngines) {
      Training training(holder, optimizers::SGD({}), {}, {},
                        tpu::Adam{.learning_rate = 0.1, .lazy_adam = false, .clipnorm = 1},
                        pipelined);
      Training lazy(holder, optimizers::SGD({}), {}, {},
                    tpu::Adam{.learning_rate = 0.1, .clipnorm = 1}, pipelined);
      for (int i = 0; i < 2; ++i) {
        training.step();
        lazy.step();
      }
      if (!first) first = training.table(0);
      expect_near(training.table(0), *first, {.absolute = 1e-5, .relative = 1e-5});
      expect_near(lazy.table(0), *first, {.absolute = 1e-5, .relative = 1e-5});
    }
  }
}

TEST(TableNormsTest, AGradientThatIsNotFiniteReachesAllRowsOfTheNorm) {
  distribute::TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  tpu::TPUEmbedding embedding(
      FeatureConfig{.table = make_table({.vocabulary_size = 3, .dim = 1, .initializer = "ones"})},
      tpu::SGD{.learning_rate = 1, .clipnorm = 1});
  const Tensors batch = testing_support::ids({0, 1, 2});
  const Tensors trained = testing_support::ids({0, 1, 1});
  embedding.enqueue(distribute::PerReplica<Tensors>({trained, trained}));
  strategy.run([&] {
    embedding.dequeue();
    embedding.apply_gradients(
        Gradient(testing_support::floats({std::numeric_limits<float>::infinity(), 1, 1}, {3, 1})));
  });
  embedding.enqueue(distribute::PerReplica<Tensors>({batch, batch}), {.training = false});
  strategy.run([&] {
    const Tensor rows = embedding.dequeue().tensor();
    EXPECT_TRUE(std::isnan(rows.data<float>()[0]));
    EXPECT_TRUE(std::isnan(rows.data<float>()[1]));
    EXPECT_EQ(rows.data<float>()[2], 1);
  });
}

TEST(TableNormsTest, ClippingByNormIsChecked) {
  EXPECT_THAT(message_of<ValueError>([] { EmbeddingOptimizer(tpu::SGD{.clipnorm = -1}); }),
              HasSubstr("clipnorm must not be negative, received -1"));
  EXPECT_THAT(message_of<ValueError>(
                  [] { EmbeddingOptimizer(tpu::Adam{.clipvalue = 1, .global_clipnorm = 1}); }),
              HasSubstr("at most one of clipvalue, clipnorm and global_clipnorm"));
  EXPECT_THAT(message_of<ValueError>([] {
                EmbeddingOptimizer(tpu::Adagrad{.use_gradient_accumulation = false, .clipnorm = 1});
              }),
              HasSubstr("clipnorm requires use_gradient_accumulation"));
}

}  // namespace keel::table_norms_test
