#include <keel/layers/embedding/tables/internal/lookup_counter.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/tpu_embedding.h>

#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::lookup_counter_test {

using testing::HasSubstr;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;

TEST(LookupCounterTest, DistinctIdsAreThoseOfAllFeaturesOfATable) {
  LookupCounter counter(2);
  counter.add({{.table = 0, .ids = ids({3, 3, 1}), .samples = 2},
               {.table = 1, .ids = testing_support::strings({"a", "b", "a"}), .samples = 3},
               {.table = 0, .ids = ids({1, 2}), .samples = 2, .invalid = {.dropped = 4}}});
  counter.add({{.table = 0, .ids = ids({9}), .samples = 1, .invalid = {.replaced = 1}}});
  EXPECT_EQ(counter.statistics(0), (LookupStatistics{.lookups = 2,
                                                     .samples = 5,
                                                     .ids = 6,
                                                     .distinct_ids = 4,
                                                     .most_ids = 5,
                                                     .most_distinct_ids = 3,
                                                     .dropped = 4,
                                                     .replaced = 1}));
  EXPECT_EQ(counter.statistics(1).distinct_ids, 2);
  EXPECT_EQ(text_of(counter.statistics(0)),
            "3 ids per lookup, at most 5; 2 distinct ids, at most 3; 2 lookups");
}

// Two features of one table with a maximum, and one of another; every replica looks up the same.
class LookupStatisticsTest : public testing::TestWithParam<int> {};

TEST_P(LookupStatisticsTest, AreEqualUnderEveryStrategy) {
  const int cores = std::abs(GetParam());  // 0: variables on the host; negative: variables
  std::unique_ptr<distribute::Strategy> strategy = std::make_unique<distribute::CPUStrategy>();
  if (cores > 0) {
    strategy = std::make_unique<distribute::TPUStrategy>(
        distribute::TPUStrategyOptions{.num_cores = cores});
  }
  const auto scope = strategy->scope();
  const Table items =
      make_table({.vocabulary_size = 5, .dim = 2, .combiner = "max", .name = "items"});
  const Table users = make_table({.vocabulary_size = 3, .dim = 1, .name = "users"});
  const layers::TPUEmbedding layer(
      {.feature_config = {{"a", FeatureConfig{.table = items, .id_policy = IdPolicy::ignore()}},
                          {"b", FeatureConfig{.table = items, .max_sequence_length = 2}},
                          {"c", FeatureConfig{.table = users, .id_policy = IdPolicy::use_row(0)}}},
       .optimizer = tpu::SGD{},
       .collect_statistics = true,
       .embedding_feature =
           GetParam() < 0 ? std::optional(EmbeddingFeature::kUnsupported) : std::nullopt});
  const Tensors batch = {{"a", ragged(IdRows{{1, 2, 7}, {1}})},
                         {"b", ragged(IdRows{{1, 3, 4}, {}})},  // 4 is cut off
                         {"c", ids({2, 9})}};
  for (int i = 0; i < 2; ++i) {
    strategy->run([&] { layer(batch); });
  }
  const int64_t lookups = 2 * std::max(cores, 1);
  const auto found = layer->lookup_statistics();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].first, items);
  EXPECT_EQ(found[0].second, (LookupStatistics{.lookups = lookups,
                                               .samples = 6 * lookups,
                                               .ids = 5 * lookups,
                                               .distinct_ids = 3 * lookups,
                                               .most_ids = 5,
                                               .most_distinct_ids = 3,
                                               .dropped = lookups}));
  EXPECT_EQ(found[1].second, (LookupStatistics{.lookups = lookups,
                                               .samples = 2 * lookups,
                                               .ids = 2 * lookups,
                                               .distinct_ids = 2 * lookups,
                                               .most_ids = 2,
                                               .most_distinct_ids = 2,
                                               .replaced = lookups}));
  EXPECT_THAT(layer->training_notices(),
              testing::Contains(HasSubstr("table 'items': 5 ids per lookup")));
  EXPECT_TRUE(layer->get_config()["collect_statistics"].boolean());
}

INSTANTIATE_TEST_SUITE_P(Strategies, LookupStatisticsTest, testing::Values(0, -2, 1, 3));

TEST(LookupCounterTest, StatisticsMustBeTurnedOn) {
  const layers::TPUEmbedding layer(
      {.feature_config = FeatureConfig{.table = make_table({.vocabulary_size = 2, .dim = 1})}});
  EXPECT_THAT(message_of<RuntimeError>([&] { layer->lookup_statistics(); }),
              HasSubstr("requires the option collect_statistics"));
}

}  // namespace keel::lookup_counter_test
