// Tests layers/embedding/distributed/distributed_embedding_tables.cc: configs, and the values,
// limits and statistics of tables.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/registry.h>

#include "tests/layers/embedding/distributed/distributed_testing.h"
#include "tests/support/errors.h"
#include "tests/support/tensors.h"

namespace keel::distributed_embedding_tables_test {

using distribute::TPUStrategy;
using distributed_testing::counting;
using distributed_testing::feature;
using distributed_testing::small_table;
using keras_rs::make_table;
using layers::DistributedEmbedding;
using testing::Contains;
using testing::HasSubstr;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::values_of;
using Features = Nest<keras_rs::FeatureConfig>;
using Values = std::vector<float>;

TEST(SpecRowsI, I08_ConfigsListTablesOnceAndFeaturesByTheirPosition) {
  const auto table = small_table("items", "mean");
  const DistributedEmbedding layer(
      {.feature_configs = Features({{"a", feature(table, {2})}, {"b", feature(table, {2, 3})}}),
       .name = "embedding"});
  const Config config = layers::serialize(*layer);
  EXPECT_EQ(config["config"]["tables"].items().size(), 1U);
  for (const char* key : {"a", "b"}) {
    EXPECT_EQ(config["config"]["feature_configs"][key]["table"], Config(0));
  }
  const auto copy = layers::deserialize(parse_json(to_json(config)));
  auto& again = dynamic_cast<DistributedEmbeddingLayer&>(*copy);
  EXPECT_EQ(again.feature_configs()["a"].leaf().table, again.feature_configs()["b"].leaf().table);
  const Tensors x({{"a", TensorLike(Tensor::from<int64_t>({1, 2}, {2}))},
                   {"b", TensorLike(Tensor::from<int64_t>({1, 2, 3, 4, 5, 6}, {2, 3}))}});
  const Tensors expected = layer(x);
  again.build(specs_of(x));
  again.set_embedding_tables(layer->get_embedding_tables());
  const Tensors received = again(x);
  EXPECT_EQ(values_of(received["a"]), values_of(expected["a"]));
  EXPECT_EQ(values_of(received["b"]), values_of(expected["b"]));
}

TEST(SpecRowsI, I09_TablesAreReadByNameWithoutPadding) {
  const auto read = [](distribute::Strategy& strategy) {
    set_random_seed(4);
    const auto scope = strategy.scope();
    const auto users = make_table({.name = "users", .vocabulary_size = 5, .embedding_dim = 3});
    const auto items = make_table({.name = "items", .vocabulary_size = 9, .embedding_dim = 2});
    items->optimizer = users->optimizer;
    const DistributedEmbedding layer(
        {.feature_configs = Features({{"u", feature(users, {4})}, {"v", feature(items, {4})}})});
    EXPECT_THROW(layer->get_embedding_tables(), RuntimeError);
    EXPECT_THROW(layer->set_embedding_tables({}), RuntimeError);
    const TensorSpec ids = {.shape = {4}, .dtype = DType::kInt64};
    layer->build(Specs({{"u", ids}, {"v", ids}}));
    return layer->get_embedding_tables();
  };
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 4});
  const auto on_device = read(cpu), on_sparse_cores = read(tpu);
  ASSERT_EQ(on_device.size(), 2U);
  EXPECT_EQ(on_device.at("users").shape(), Shape({5, 3}));
  EXPECT_EQ(on_device.at("items").shape(), Shape({9, 2}));
  for (const auto& [name, values] : on_device) {
    EXPECT_EQ(on_sparse_cores.at(name).to_vector<float>(), values.to_vector<float>()) << name;
  }
}

TEST(SpecRowsI, I10_UpdateStatsIsRejectedWithoutSparseCores) {
  EXPECT_THROW(DistributedEmbedding(
                   {.feature_configs = feature(small_table("items"), {2}), .update_stats = true}),
               ValueError);
}

TEST(DistributedTablesTest, SettingTablesIsAllOrNothing) {
  const auto a = small_table("a"), b = small_table("b");
  const DistributedEmbedding layer(
      {.feature_configs = Features::list({feature(a, {2}), feature(b, {2})})});
  const Tensor ids = Tensor::zeros({2}, DType::kInt64);
  layer(Tensors::list({ids, ids}));
  const Values before = layer->get_embedding_tables().at("a").to_vector<float>();
  EXPECT_THROW(layer->set_embedding_tables({{"a", counting()}, {"c", counting()}}), ValueError);
  EXPECT_THROW(layer->set_embedding_tables({{"a", counting()}, {"b", Tensor::zeros({8, 3})}}),
               ValueError);
  EXPECT_EQ(layer->get_embedding_tables().at("a").to_vector<float>(), before);
  layer->set_embedding_tables({{"a", counting()}});
  EXPECT_EQ(layer->get_embedding_tables().at("a").to_vector<float>(),
            counting().to_vector<float>());
}

TEST(DistributedTablesTest, TablesReadAreCopies) {
  const DistributedEmbedding layer({.feature_configs = feature(small_table("items"), {2})});
  layer(Tensor::zeros({2}, DType::kInt64));
  layer->set_embedding_tables({{"items", counting()}});
  const auto before = layer->get_embedding_tables();
  layer->set_embedding_tables({{"items", Tensor::zeros({8, 2})}});
  EXPECT_EQ(before.at("items").to_vector<float>(), counting().to_vector<float>());
}

TEST(DistributedTablesTest, IdsBeyondLimitsAreErrorsOrCounted) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const Tensor ids = Tensor::from<int64_t>({2, 4, 6, 1}, {1, 4});
  for (const IdLimitPolicy policy :
       {IdLimitPolicy::kUnlimited, IdLimitPolicy::kError, IdLimitPolicy::kDrop}) {
    const auto table = small_table("items");
    table->max_ids_per_partition = 2;
    const DistributedEmbedding layer(
        {.feature_configs = feature(table, {2, 4}), .id_limit_policy = policy});
    layer->build(Specs(TensorSpec{.shape = {1, 4}, .dtype = DType::kInt64}));
    layer->set_embedding_tables({{"items", counting()}});
    const auto run = [&] { return values_of(tpu.run([&] { return Tensors(layer(ids)); })[1]); };
    if (policy == IdLimitPolicy::kError) {
      EXPECT_THAT(message_of(run), HasSubstr("max_ids_per_partition"));
      continue;
    }
    const bool drops = policy == IdLimitPolicy::kDrop;
    EXPECT_EQ(run(), drops ? (Values{7, 70}) : (Values{13, 130}));
    const IdStatistics statistics = layer->id_statistics().at("items");
    EXPECT_EQ(statistics.dropped_ids, drops ? 2 : 0) << "one in each replica";
    EXPECT_EQ(statistics.max_ids_per_partition, drops ? 3 : 0);
    ASSERT_EQ(layer->training_notices().size(), drops ? 1U : 0U);
    if (drops) {
      EXPECT_THAT(layer->training_notices()[0], HasSubstr("2 ids of table 'items'"));
    }
  }
}

// Partition 0 gets the ids 2, 4 and 6, and the second batch adds one of them twice.
TEST(DistributedTablesTest, WithUpdateStatsLimitsGrowToTheDemand) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  for (const IdLimitPolicy policy :
       {IdLimitPolicy::kUnlimited, IdLimitPolicy::kError, IdLimitPolicy::kDrop}) {
    const auto table = small_table("items");
    table->max_ids_per_partition = 2;
    table->max_unique_ids_per_partition = 1;
    const DistributedEmbedding layer({.feature_configs = feature(table, {2, 4}),
                                      .update_stats = true,
                                      .id_limit_policy = policy});
    layer->build(Specs(TensorSpec{.shape = {1, 4}, .dtype = DType::kInt64}));
    layer->set_embedding_tables({{"items", counting()}});
    const auto run = [&](const std::vector<int64_t>& ids) {
      return values_of(tpu.run([&] { return Tensors(layer(Tensor::from(ids, {1, 4}))); })[1]);
    };
    EXPECT_EQ(run({2, 4, 6, 1}), (Values{13, 130}));
    EXPECT_EQ(layer->id_limits().at("items"), (IdLimits{3, 3}));
    run({2, 2, 4, 4});
    EXPECT_EQ(layer->id_limits().at("items"), (IdLimits{4, 3}));
    EXPECT_EQ(layer->id_statistics().at("items").dropped_ids, 0);
    EXPECT_EQ(layer->id_statistics().at("items").max_ids_per_partition, 4);
    EXPECT_TRUE(layer->get_config()["update_stats"].boolean());
    layer->set_id_limits({{"items", {50, 40}}, {"unknown", {1, 1}}});
    run({2, 4, 6, 1});
    EXPECT_EQ(layer->id_limits().at("items"), (IdLimits{50, 40}));
    EXPECT_THROW(layer->set_id_limits({{"items", {0, 1}}}), ValueError);
  }
}

TEST(DistributedTablesTest, LimitsOfAnEarlierRunReplaceThoseOfTheConfig) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const auto table = small_table("items");
  table->max_ids_per_partition = 1;
  const DistributedEmbedding layer(
      {.feature_configs = feature(table, {2, 4}), .id_limit_policy = IdLimitPolicy::kError});
  layer->build(Specs(TensorSpec{.shape = {1, 4}, .dtype = DType::kInt64}));
  const Tensor ids = Tensor::from<int64_t>({2, 4, 6, 1}, {1, 4});
  const auto run = [&] { return tpu.run([&] { return Tensors(layer(ids)); })[1]; };
  EXPECT_THROW(run(), ValueError);
  layer->set_id_limits({{"items", {3, 3}}});
  EXPECT_NO_THROW(run());
}

TEST(DistributedTablesTest, LaterChangesOfConfigsDoNotReachTheLayer) {
  const auto table = small_table("items", "sum");
  const DistributedEmbedding layer({.feature_configs = feature(table, {1, 2}), .name = "e"});
  const std::string before = to_json(layer->get_config());
  table->combiner = "mean";
  table->name = "other";
  EXPECT_EQ(to_json(layer->get_config()), before);
}

// Two features of one table, whose rows end after 2 ids, and one of another table.
TEST(DistributedTablesTest, LookupStatisticsAreEqualForBothPlacements) {
  for (const bool on_sparse_cores : {false, true}) {
    SCOPED_TRACE(on_sparse_cores);
    TPUStrategy tpu({.num_cores = 2});
    const auto scope = tpu.scope();
    const std::string placement = on_sparse_cores ? "sparsecore" : "default_device";
    const auto items = small_table("items", "sum", placement);
    const auto users = make_table({.name = "users",
                                   .embedding_dim = 2,
                                   .optimizer = "sgd",
                                   .placement = placement,
                                   .dynamic = DynamicVocabulary{}});
    const DistributedEmbedding layer(
        {.feature_configs = Features({{"a", feature(items, {kUnknown, 2})},
                                      {"b", feature(items, {kUnknown})},
                                      {"c", feature(users, {kUnknown, 3})}}),
         .collect_statistics = true});
    const Tensors batch = {{"a", ragged(IdRows{{1, 2, 7}, {1}})},
                           {"b", ids({3, 1})},
                           {"c", ids({-5, 9, 9, 9, 9, 9}, {2, 3})}};
    layer->build(specs_of(batch));
    tpu.run([&] { layer(batch); });
    const auto found = layer->lookup_statistics();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found.at("items"), (LookupStatistics{.lookups = 2,
                                                   .samples = 8,
                                                   .ids = 10,
                                                   .distinct_ids = 6,
                                                   .most_ids = 5,
                                                   .most_distinct_ids = 3}));
    EXPECT_EQ(found.at("users"), (LookupStatistics{.lookups = 2,
                                                   .samples = 4,
                                                   .ids = 12,
                                                   .distinct_ids = 4,
                                                   .most_ids = 6,
                                                   .most_distinct_ids = 2}));
    EXPECT_THAT(layer->training_notices(),
                Contains(HasSubstr("table 'items': 5 ids per lookup, at most 5")));
    const auto copy = DistributedEmbeddingLayer::from_config(layer->get_config());
    EXPECT_NO_THROW(copy->lookup_statistics());
  }
}

TEST(DistributedTablesTest, IdsBeyondALimitAreNotLookedUp) {
  TPUStrategy tpu({.num_cores = 1});
  const auto scope = tpu.scope();
  const auto table = small_table("items");
  table->max_ids_per_partition = 2;
  const DistributedEmbedding layer({.feature_configs = feature(table, {1, 4}),
                                    .id_limit_policy = IdLimitPolicy::kDrop,
                                    .collect_statistics = true});
  layer->build(Specs(TensorSpec{.shape = {1, 4}, .dtype = DType::kInt64}));
  tpu.run([&] { layer(ids({2, 4, 6, 1}, {1, 4})); });
  EXPECT_EQ(layer->lookup_statistics().at("items").ids, 2);
}

TEST(DistributedTablesTest, StatisticsMustBeTurnedOn) {
  const DistributedEmbedding layer({.feature_configs = feature(small_table("items"), {2})});
  EXPECT_THAT(message_of<RuntimeError>([&] { layer->lookup_statistics(); }),
              HasSubstr("requires the option collect_statistics"));
}

TEST(DistributedTablesTest, TheTableOfAFeatureIsTheLayersCopy) {
  const auto table = small_table("items");
  const DistributedEmbedding layer({.feature_configs = Features({{"a", feature(table, {2})}})});
  table->name = "other";
  EXPECT_EQ(layer->table_of_feature("a")->name, "items");
  EXPECT_THROW(layer->table_of_feature("b"), ValueError);
}

}  // namespace keel::distributed_embedding_tables_test
