#include <keel/layers/embedding/mid_level/tpu_embedding_v2.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/layers/embedding/mid_level/mid_level_testing.h"
#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"

namespace keel::mid_level::tpu_embedding_v2_test {

using distribute::TPUStrategy;
using fixture::counting;
using fixture::ids;
using fixture::ragged;
using testing::HasSubstr;
using testing_support::message_of;
using tpu::EmbeddingResult;
using tpu::PreservedResult;
using tpu::SparseCoreEmbeddingConfig;
using tpu::TPUEmbeddingV2;

// A table "t" of 8 x 2, 0, 1, 2, ... row by row, with one ragged feature, under two cores.
struct Pooled {
  explicit Pooled(const SparseCoreEmbeddingConfig& config = {}, bool pipelined = false)
      : strategy({.num_cores = 2}), embedding([&] {
          const auto scope = strategy.scope();
          return std::make_unique<TPUEmbeddingV2>(one_feature(on(table_of(8, 2, "t"))),
                                                  tpu::SGD{.learning_rate = 0.5}, pipelined,
                                                  config);
        }()) {
    embedding->build(f_shape(Shape{2, kUnknown}));
    set_state(*embedding, "t", counting(8, 2));
  }

  Values look_up(const fixture::IdRows& rows) {
    return strategy.run([&] { return flat((*embedding)(f(ragged(rows))).activations); })
        .values()[1];
  }

  TPUStrategy strategy;
  std::unique_ptr<TPUEmbeddingV2> embedding;
};

TEST(TPUEmbeddingV2Test, ACallReturnsActivationsAndTheResultThatUpdates) {
  Pooled pooled;
  EXPECT_EQ(pooled.look_up({{0, 1}, {7}}), (Values{2, 4, 14, 15}));
  pooled.strategy.run([&] {
    const auto [activations, preserved] =
        pooled.embedding->embedding_lookup(f(ragged(fixture::IdRows{{0, 1}, {7}})));
    pooled.embedding->apply_gradients(filled_like(activations, 1), preserved);
  });
  // Two replicas, each with a gradient of 1 for each row: 0.5 * 2 is subtracted.
  EXPECT_EQ(pooled.look_up({{0, 1}, {2}}), (Values{0, 2, 4, 5}));
  EXPECT_EQ(pooled.embedding->table_values().at("t").to_vector<float>()[14], 13);
}

TEST(TPUEmbeddingV2Test, LookupsOfOneStepAreUpdatedInAnyOrderOrNot) {
  Pooled pooled;
  pooled.strategy.run([&] {
    const auto look_up = [&](int64_t id) {
      return (*pooled.embedding)(f(ragged(fixture::IdRows{{id}, {}})));
    };
    const EmbeddingResult first = look_up(0), second = look_up(1), unused = look_up(2);
    pooled.embedding->apply_gradients(filled_like(second.activations, 1), second.preserved);
    pooled.embedding->apply_gradients(filled_like(first.activations, 2), first.preserved);
  });
  EXPECT_EQ(pooled.look_up({{0}, {1}}), (Values{-2, -1, 1, 2}));
  EXPECT_EQ(pooled.look_up({{2}, {3}}), (Values{4, 5, 6, 7}));
}

TEST(TPUEmbeddingV2Test, ThePreservedResultBelongsToOneLookup) {
  Pooled pooled;
  const auto message = [&](int which) {
    return message_of<RuntimeError>([&] {
      pooled.strategy.run([&] {
        const auto [activations, preserved] =
            (*pooled.embedding)(f(ragged(fixture::IdRows{{0}, {1}})));
        const auto apply = [&](const PreservedResult& result) {
          pooled.embedding->apply_gradients(filled_like(activations, 1), result);
        };
        if (which == 0) apply(PreservedResult());
        apply(preserved);
        apply(preserved);
      });
    });
  };
  EXPECT_THAT(message(0), HasSubstr("belongs to no lookup"));
  EXPECT_THAT(message(1), HasSubstr("have been applied"));
  EXPECT_THAT(message_of<RuntimeError>([&] { (*pooled.embedding)(f(ids({1}, {1, 1}))); }),
              HasSubstr("in a replica"));
  EXPECT_THROW(pooled.embedding->embedding_tables(), RuntimeError);
}

TEST(TPUEmbeddingV2Test, OutsideATpuStrategyItIsRejected) {
  EXPECT_THAT(message_of<RuntimeError>(
                  [] { TPUEmbeddingV2(one_feature(on(table_of(8, 2, "t"))), tpu::SGD{}); }),
              HasSubstr("TPUEmbeddingForServing"));
}

TEST(TPUEmbeddingV2Test, TheConfigHasTheDefaultsOfTensorFlow) {
  const SparseCoreEmbeddingConfig config;
  EXPECT_FALSE(config.disable_table_stacking);
  EXPECT_EQ(config.max_ids_per_chip_per_sample, 64);
  EXPECT_FALSE(config.max_ids_per_table);
  EXPECT_FALSE(config.max_unique_ids_per_table);
  EXPECT_FALSE(config.allow_id_dropping);
  EXPECT_TRUE(config.initialize_tables_on_host);
  EXPECT_FALSE(config.enable_fast_table_initialization);
}

// Ids 0, 2 and 4 belong to the first of two cores, id 1 to the second.
TEST(TPUEmbeddingV2Test, LimitsOfATableAreErrorsOrDropIds) {
  for (const bool unique : {false, true}) {
    SparseCoreEmbeddingConfig config;
    (unique ? config.max_unique_ids_per_table : config.max_ids_per_table) = {{"t", 2}};
    Pooled strict(config);
    EXPECT_EQ(strict.look_up({{0, 2}, {1}}), (Values{4, 6, 2, 3}));
    EXPECT_THAT(message_of<ValueError>([&] { strict.look_up({{0, 2}, {4, 1}}); }),
                HasSubstr(unique ? "TPUEmbeddingV2: table 't': max_unique_ids_per_partition is 2"
                                 : "TPUEmbeddingV2: table 't': max_ids_per_partition is 2"));
    config.allow_id_dropping = true;
    Pooled dropping(config);
    EXPECT_EQ(dropping.look_up({{0, 2}, {4, 1}}), (Values{4, 6, 2, 3}));
    EXPECT_EQ(dropping.look_up({{0, 0, 2}, {1}}),
              unique ? (Values{4, 7, 2, 3}) : (Values{0, 2, 2, 3}));
    const IdStatistics statistics = dropping.embedding->id_statistics().at("t");
    EXPECT_EQ(statistics.dropped_ids, unique ? 2 : 4) << "in two replicas";
    EXPECT_EQ(statistics.max_ids_per_partition, 3);
  }
}

TEST(TPUEmbeddingV2Test, TheLimitPerSampleHoldsForTheBatch) {
  Pooled strict({.max_ids_per_chip_per_sample = 2});
  EXPECT_EQ(strict.look_up({{1, 2, 3}, {4}}), (Values{12, 15, 8, 9}));
  EXPECT_THAT(message_of<ValueError>([&] { strict.look_up({{1, 2, 3}, {4, 5}}); }),
              HasSubstr("5 ids for 2 samples"));
  Pooled dropping({.max_ids_per_chip_per_sample = 2, .allow_id_dropping = true});
  EXPECT_EQ(dropping.look_up({{1, 2, 3}, {4, 5}}), (Values{12, 15, 8, 9}));
  EXPECT_EQ(dropping.embedding->id_statistics().at("t").dropped_ids, 2);
}

TEST(TPUEmbeddingV2Test, InvalidLimitsAreRejected) {
  const auto message = [](const SparseCoreEmbeddingConfig& config) {
    return message_of<ValueError>([&] { Pooled pooled(config); });
  };
  EXPECT_THAT(message({.max_ids_per_chip_per_sample = 0}),
              HasSubstr("max_ids_per_chip_per_sample must be positive"));
  EXPECT_THAT(message({.max_ids_per_table = {{{"u", 3}}}}), HasSubstr("unknown table 'u'"));
  EXPECT_THAT(message({.max_unique_ids_per_table = {{{"t", 0}}}}), HasSubstr("received 0"));
}

TEST(TPUEmbeddingV2Test, APipelinedUpdateIsSeenOneLookupLater) {
  Pooled pooled({}, true);
  const auto step = [&] {
    return pooled.strategy
        .run([&] {
          const auto [activations, preserved] =
              (*pooled.embedding)(f(ragged(fixture::IdRows{{0}, {}})));
          pooled.embedding->apply_gradients(filled_like(activations, 1), preserved);
          return flat(activations)[0];
        })
        .values()[0];
  };
  EXPECT_EQ(step(), 0);
  EXPECT_EQ(step(), 0);
  EXPECT_EQ(step(), -1);
}

}  // namespace keel::mid_level::tpu_embedding_v2_test
