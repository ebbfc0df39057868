// Statistics of the lookups of mid-level objects and of PartialTPUEmbedding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/mid_level/tpu_embedding.h>
#include <keel/layers/embedding/mid_level/tpu_embedding_v2.h>
#include <keel/layers/embedding/partial_tpu_embedding.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::mid_level_statistics_test {

using distribute::TPUStrategy;
using testing::Contains;
using testing::HasSubstr;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;

// Two features of the table "items" and one of "users".
Nest<FeatureConfig> features() {
  const Table items = make_table({.vocabulary_size = 8, .dim = 2, .name = "items"});
  const Table users = make_table({.vocabulary_size = 3, .dim = 1, .name = "users"});
  return {{"a", FeatureConfig{.table = items, .id_policy = IdPolicy::ignore()}},
          {"b", FeatureConfig{.table = items}},
          {"c", FeatureConfig{.table = users}}};
}

Tensors batch() {
  return {{"a", ragged(IdRows{{1, 2, 99}, {1}})},
          {"b", ragged(IdRows{{3, 1}, {}})},
          {"c", ids({2, 2})}};
}

// Checks the counts of a number of lookups of batch().
void expect_counts(const std::map<std::string, LookupStatistics>& found, int64_t lookups) {
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found.at("items"), (LookupStatistics{.lookups = lookups,
                                                 .samples = 4 * lookups,
                                                 .ids = 5 * lookups,
                                                 .distinct_ids = 3 * lookups,
                                                 .most_ids = 5,
                                                 .most_distinct_ids = 3,
                                                 .dropped = lookups}));
  EXPECT_EQ(found.at("users"), (LookupStatistics{.lookups = lookups,
                                                 .samples = 2 * lookups,
                                                 .ids = 2 * lookups,
                                                 .distinct_ids = lookups,
                                                 .most_ids = 2,
                                                 .most_distinct_ids = 1}));
}

TEST(MidLevelStatisticsTest, TPUEmbeddingCountsLookupsFromTheCallOn) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  tpu::TPUEmbedding embedding(features(), tpu::SGD{});
  const auto look_up = [&] {
    embedding.enqueue(distribute::PerReplica<Tensors>({batch(), batch()}), {.training = false});
    strategy.run([&] { embedding.dequeue(); });
  };
  look_up();
  EXPECT_THAT(message_of<RuntimeError>([&] { embedding.lookup_statistics(); }),
              HasSubstr("set_collect_statistics"));
  embedding.set_collect_statistics(true);
  look_up();
  look_up();
  expect_counts(embedding.lookup_statistics(), 4);
}

TEST(MidLevelStatisticsTest, TPUEmbeddingV2CountsLookups) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  tpu::TPUEmbeddingV2 embedding(features(), tpu::SGD{});
  embedding.set_collect_statistics(true);
  strategy.run([&] { embedding(batch()); });
  expect_counts(embedding.lookup_statistics(), 2);
}

TEST(MidLevelStatisticsTest, TablesOfVariablesCountLookups) {
  tpu::TPUEmbeddingForServing serving(features());
  serving.set_collect_statistics(true);
  serving(batch());
  expect_counts(serving.lookup_statistics(), 1);
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  tpu::TPUEmbeddingV0 v0(features());
  v0.set_collect_statistics(true);
  v0.build();
  strategy.run([&] { v0(batch()); });
  expect_counts(v0.lookup_statistics(), 2);
}

TEST(MidLevelStatisticsTest, AnObjectInHostModeHasNoLookups) {
  tpu::TPUEmbedding embedding(features(), {});
  EXPECT_THROW(embedding.set_collect_statistics(true), RuntimeError);
}

TEST(MidLevelStatisticsTest, PartialTPUEmbeddingCountsTablesOfBothSizes) {
  const Table large = make_table({.vocabulary_size = 9, .dim = 2, .name = "large"});
  const Table small = make_table({.vocabulary_size = 4, .dim = 1, .name = "small"});
  const layers::PartialTPUEmbedding layer({.feature_config = {{"a", FeatureConfig{.table = large}},
                                                              {"b", FeatureConfig{.table = small}},
                                                              {"c", FeatureConfig{.table = small}}},
                                           .optimizer = tpu::SGD{},
                                           .size_threshold = 5,
                                           .collect_statistics = true});
  layer(Tensors{{"a", ids({1, 8})}, {"b", ids({1, 1})}, {"c", ids({3, 1})}});
  const auto found = layer->lookup_statistics();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found.at("large").ids, 2);
  EXPECT_EQ(found.at("small"), (LookupStatistics{.lookups = 1,
                                                 .samples = 4,
                                                 .ids = 4,
                                                 .distinct_ids = 2,
                                                 .most_ids = 4,
                                                 .most_distinct_ids = 2}));
  EXPECT_THAT(layer->training_notices(), Contains(HasSubstr("table 'small': 4 ids per lookup")));
  EXPECT_TRUE(layer->get_config()["collect_statistics"].boolean());
  const layers::PartialTPUEmbedding silent(
      {.feature_config = {{"b", FeatureConfig{.table = small}}}});
  EXPECT_THAT(message_of<RuntimeError>([&] { silent->lookup_statistics(); }),
              HasSubstr("collect_statistics"));
}

}  // namespace keel::mid_level_statistics_test
