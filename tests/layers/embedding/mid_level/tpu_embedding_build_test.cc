// Construction of the object: tables, optimizers, shapes and the record.
// Tests distribute/tpu/tpu_system.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/distribute/embedding/configuration.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/embedding/tpu_parameters.h>
#include <keel/optimizers/sgd.h>

#include "tests/layers/embedding/mid_level/mid_level_testing.h"
#include "tests/support/errors.h"

namespace keel::mid_level::tpu_embedding_build_test {

using distribute::PerReplica;
using distribute::TPUStrategy;
using fixture::IdRows;
using testing::AllOf;
using testing::HasSubstr;
using testing_support::message_of;
using tpu::TPUEmbedding;

std::vector<Shape> shapes_in(const TPUEmbedding& embedding) {
  std::vector<Shape> out;
  for (const auto& feature : distribute::parse_engine_configuration(embedding.record()).features) {
    out.push_back(feature.input_shape);
  }
  return out;
}

// Returns the output shapes after build.
std::vector<Shape> built_shapes(const Nest<FeatureConfig>& features,
                                const std::optional<InputShapes>& shapes,
                                std::optional<int64_t> batch = {}) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbedding embedding(features, "sgd");
  embedding.build(shapes, batch);
  return shapes_in(embedding);
}

TEST(SpecRowsA, A08_TwoTablesOfOneNameAreAnError) {
  const Nest<FeatureConfig> features =
      Nest<FeatureConfig>::tuple({on(table_of(4, 2, "table")), on(table_of(4, 2, "table"))});
  EXPECT_THAT(message_of<ValueError>([&] { TPUEmbedding(features, "sgd"); }), HasSubstr("table"));
}

TEST(SpecRowsA, A09_TablesWithoutNamesAreNumbered) {
  const Table a = table_of(4, 2);
  const Table b = table_of(4, 2);
  TPUEmbedding embedding(Nest<FeatureConfig>::tuple({on(a), on(b), on(a)}), "sgd");
  EXPECT_EQ(embedding.table_set().tables.size(), 2u);
  EXPECT_EQ(a->name, "table_0");
  EXPECT_EQ(b->name, "table_1");
}

TEST(SpecRowsA, A10_AConflictingNumberedNameIsAnError) {
  const Table second = table_of(4, 2);
  const Nest<FeatureConfig> features =
      Nest<FeatureConfig>::tuple({on(table_of(4, 2, "table_1")), on(second)});
  EXPECT_THAT(message_of<ValueError>([&] { TPUEmbedding(features, "sgd"); }), HasSubstr("table_1"));
  EXPECT_EQ(second->name, "");
  EXPECT_FALSE(second->optimizer);
}

TEST(SpecRowsA, A11_TablesAreComparedByIdentity) {
  const Table a = table_of(4, 2);
  const Table b = table_of(4, 2);
  TPUEmbedding two(Nest<FeatureConfig>::tuple({on(a), on(b)}), "sgd");
  const auto tables = two.embedding_tables();
  ASSERT_EQ(tables.size(), 2u);
  tables[0].second.assign(Tensor::full<float>({4, 2}, 1));
  EXPECT_EQ(tables[1].second.read().to_vector<float>(), Values(8, 0));
  TPUEmbedding one(Nest<FeatureConfig>::tuple({on(a), on(a)}), "sgd");
  EXPECT_EQ(one.embedding_tables().size(), 1u);
}

TEST(SpecRowsA, A17_ParametersOfTheV1EngineAreRejected) {
  const Table table = table_of(4, 2, "t");
  const auto make = [&] {
    TPUEmbedding(one_feature(on(table)), tpu::AdagradParameters{.learning_rate = 0.1});
  };
  EXPECT_THAT(message_of<ValueError>(make),
              AllOf(HasSubstr("'t'"), HasSubstr("AdagradParameters")));
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  EXPECT_THAT(message_of<ValueError>(make),
              AllOf(HasSubstr("'t'"), HasSubstr("AdagradParameters")));
  EXPECT_FALSE(table->optimizer);
}

TEST(TPUEmbeddingBuildTest, KerasOptimizersAreRejected) {
  const Table table = table_of(4, 2, "t");
  EXPECT_THAT(message_of<ValueError>([&] {
                TPUEmbedding(one_feature(on(table)), optimizers::SGD({.learning_rate = 0.1}));
              }),
              AllOf(HasSubstr("'t'"), HasSubstr("SGD")));
}

struct SlotCalls {
  std::vector<std::string> tables;
  std::vector<std::vector<std::string>> names;
  std::vector<size_t> initializers;
};
SlotVariableCreationFn zero_slots(SlotCalls& calls) {
  return [&calls](const TableVariable& table, const std::vector<std::string>& names,
                  const std::vector<Initializer>& initializers) {
    calls.tables.push_back(table.name);
    calls.names.push_back(names);
    calls.initializers.push_back(initializers.size());
    return SlotVariables{{"accumulators", initializers::zeros()}};
  };
}

TEST(SpecRowsA, A18_ASlotFactoryMakesTheSlots) {
  for (const bool accelerator : {true, false}) {
    std::optional<TPUStrategy> strategy;
    std::optional<distribute::Strategy::Scope> scope;
    if (accelerator)
      scope.emplace(strategy.emplace(distribute::TPUStrategyOptions{.num_cores = 2}));
    SlotCalls calls;
    const Table a = table_of(4, 2, "a");
    const Table b = table_of(3, 2, "b");
    TPUEmbedding embedding(
        Nest<FeatureConfig>::tuple({on(a), on(b)}),
        tpu::Adagrad{.learning_rate = 0.1, .slot_variable_creation_fn = zero_slots(calls)});
    embedding.build(8);
    embedding.build(8);
    EXPECT_EQ(values_of(embedding, "a/accumulators"), Values(8, 0));
    EXPECT_EQ(values_of(embedding, "b/accumulators"), Values(6, 0));
    EXPECT_EQ(calls.tables, (std::vector<std::string>{"a", "b"}));
    EXPECT_EQ(calls.names, (std::vector<std::vector<std::string>>(2, {"accumulators"})));
    EXPECT_EQ(calls.initializers, (std::vector<size_t>{1, 1}));
  }
}

TEST(SpecRowsA, A19_ASlotFactoryMustReturnShardableSlots) {
  const auto factory = [](const TableVariable& table, const auto&, const auto&) {
    return SlotVariables{{"accumulators", Tensor::zeros(table.shape)}};
  };
  const tpu::Adagrad optimizer = {.learning_rate = 0.1, .slot_variable_creation_fn = factory};
  TPUStrategy strategy({.num_cores = 2});
  {
    const auto scope = strategy.scope();
    TPUEmbedding embedding(one_feature(on(table_of(4, 2, "t"))), optimizer);
    EXPECT_THAT(message_of<ValueError>([&] { embedding.build(8); }),
                AllOf(HasSubstr("accumulators"), HasSubstr("'t'")));
    EXPECT_FALSE(embedding.built());
    TPUEmbedding other(one_feature(on(table_of(4, 2, "t"))), "adagrad");
    EXPECT_NO_THROW(other.build(8));
  }
  TPUEmbedding on_host(one_feature(on(table_of(4, 2, "t"))), optimizer);
  on_host.build();
  EXPECT_EQ(values_of(on_host, "t/accumulators"), Values(8, 0));
}

TEST(SpecRowsE, E03_OneObjectIsLiveAtATime) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbedding first(one_feature(on(table_of(8, 4))), "sgd");
  TPUEmbedding second(one_feature(on(table_of(8, 4))), "sgd");
  first.build(4);
  EXPECT_THROW(second.build(4), RuntimeError);
  EXPECT_THROW(second.enqueue(for_all(f(id(0)), strategy)), RuntimeError);
  distribute::initialize_tpu_system(strategy);
  EXPECT_NO_THROW(second.build(4));
  EXPECT_THROW(first.enqueue(for_all(f(id(0)), strategy)), RuntimeError);
  EXPECT_THROW(strategy.run([&] { first.dequeue(); }), RuntimeError);
}

TEST(SpecRowsE, E04_ASecondBuildDoesNothing) {
  Small s;
  s.embedding->build(64);
  s.embedding->build(32);
  s.embedding->build(f_shape(OptionalShape()));
  EXPECT_EQ(shapes_in(*s.embedding), (std::vector<Shape>{{64}}));
}

TEST(SpecRowsE, E05_TheShapeOfTheConfigOverridesThatOfBuild) {
  FeatureConfig feature = on(table_of(8, 4));
  feature.output_shape = Shape{2, 4};
  EXPECT_EQ(built_shapes(one_feature(feature), f_shape(Shape{2, kUnknown, kUnknown})),
            (std::vector<Shape>{{2, 4}}));
}

TEST(SpecRowsE, E06_AConflictingShapeOfBuildIsAnError) {
  FeatureConfig feature = on(table_of(8, 4));
  feature.output_shape = Shape{2, 4};
  EXPECT_THAT(
      message_of<ValueError>([&] { built_shapes(one_feature(feature), f_shape(Shape{1, 1, 1})); }),
      AllOf(HasSubstr("'f'"), HasSubstr("(2, 4)"), HasSubstr("(1, 1)")));
}

TEST(SpecRowsE, E07_AnInputOfAConflictingShapeIsAnError) {
  Small s;
  s.embedding->build(f_shape(Shape{1, 1, 1}));
  const TensorLike input =
      fixture::sparse_at(IdRows{{0, 0, 0}}, std::vector<int64_t>{1}, {2, 4, 2});
  EXPECT_THAT(message_of<ValueError>([&] { s.embedding->enqueue(for_all(f(input), s.strategy)); }),
              AllOf(HasSubstr("'f'"), HasSubstr("(1, 1)"), HasSubstr("(2, 4)")));
}

TEST(SpecRowsE, E08_ShapesMustBeDefinedByBuild) {
  const Nest<FeatureConfig> features = one_feature(on(table_of(8, 4)));
  EXPECT_THAT(message_of<ValueError>([&] { built_shapes(features, {}); }), HasSubstr("'f'"));
  EXPECT_THAT(message_of<ValueError>(
                  [&] { built_shapes(features, f_shape(Shape{1, kUnknown, kUnknown})); }),
              HasSubstr("'f'"));
  EXPECT_THAT(message_of<ValueError>([&] { built_shapes(features, f_shape({})); }),
              HasSubstr("'f'"));
  EXPECT_THAT(message_of<ValueError>([&] { built_shapes(features, f_shape(Shape{})); }),
              HasSubstr("'f'"));
  EXPECT_THROW(built_shapes(features, InputShapes()), ValueError);
}

FeatureConfig with_length(int64_t length) {
  return {.table = table_of(8, 4), .max_sequence_length = length};
}

TEST(SpecRowsE, E09_TheFirstInputsDetermineUnconfiguredShapes) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const FeatureConfig feature = on(table_of(8, 4));
  TPUEmbedding embedding(Nest<FeatureConfig>::tuple({feature, feature, feature}), "sgd");
  const auto cells = [](const Shape& shape) {
    return fixture::sparse_at(IdRows{{1, 2, 1}}, std::vector<int64_t>{1}, shape);
  };
  embedding.enqueue(for_all(
      Tensors::tuple({fixture::ids({1, 2, 3}, {1, 3, 1}), cells({2, 4, 2}), cells({2, 4, 3})}),
      strategy));
  EXPECT_EQ(shapes_in(embedding), (std::vector<Shape>{{1, 3}, {2, 4}, {2, 4}}));
}

TEST(SpecRowsE, E10_BuildAcceptsEitherShapeOfASequenceFeature) {
  for (const Shape& shape : {Shape{2, 2}, Shape{2, 3, 2}}) {
    EXPECT_EQ(built_shapes(one_feature(with_length(3)), f_shape(shape)),
              (std::vector<Shape>{{2, 3}}));
  }
}

TEST(SpecRowsE, E11_BuildAcceptsABatchSize) {
  FeatureConfig configured = with_length(0);
  configured.output_shape = Shape{2, 4};
  EXPECT_EQ(
      built_shapes(Nest<FeatureConfig>::tuple({on(table_of(8, 4)), with_length(5), configured}), {},
                   8),
      (std::vector<Shape>{{8}, {8, 5}, {2, 4}}));
}

TEST(TPUEmbeddingBuildTest, EveryReplicaMayBuild) {
  Small s(4);
  s.strategy.run([&] { s.embedding->build(f_shape(Shape{2, 1})); });
  EXPECT_EQ(shapes_in(*s.embedding), (std::vector<Shape>{{2}}));
}

TEST(TPUEmbeddingBuildTest, ABatchSizeMayBeInEitherArgumentAndShapesOverrideIt) {
  const Nest<FeatureConfig> features = one_feature(on(table_of(8, 4)));
  testing::internal::CaptureStderr();
  EXPECT_EQ(built_shapes(features, {}, 7), (std::vector<Shape>{{7}}));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("deprecated"));
  EXPECT_EQ(built_shapes(features, f_shape(Shape{3, 1}), 7), (std::vector<Shape>{{3}}));
}

TEST(SpecRowsE, E12_TheRecordCountsSamplesAndFeatures) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table a = table_of(8, 2, "A");
  const Table b = table_of(8, 2, "B");
  TPUEmbedding embedding({{"A1", on(a)}, {"A2", on(a)}, {"B1", on(b)}}, "sgd");
  embedding.build(InputShapes{{"A1", OptionalShape(Shape{8, 1})},
                              {"A2", OptionalShape(Shape{8, 3, 1})},
                              {"B1", OptionalShape(Shape{4, 1})}});
  const auto record = distribute::parse_engine_configuration(embedding.record());
  EXPECT_EQ(record.batch_size_per_tensor_core, 4);
  EXPECT_EQ(record.tables[0].num_features, 8);
  EXPECT_EQ(record.tables[1].num_features, 1);
  EXPECT_EQ(record.num_hosts, 1);
  EXPECT_EQ(record.num_tensor_cores, 2);
  EXPECT_FALSE(record.pipeline_execution_with_tensor_core);
}

TEST(SpecRowsE, E13_ASmallTableIsPaddedInTheRecordOnly) {
  TPUStrategy strategy({.num_hosts = 8, .num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbedding embedding(one_feature(on(table_of(3, 2, "t", "ones"))), "sgd");
  embedding.build(4);
  const auto record = distribute::parse_engine_configuration(embedding.record());
  EXPECT_EQ(record.tables[0].rows, 8);
  EXPECT_EQ(record.num_hosts, 8);
  EXPECT_EQ(state_of(embedding, "t").shape(), (Shape{3, 2}));
  EXPECT_EQ(values_of(embedding, "t"), Values(6, 1));
  const auto engine = distribute::active_engine(strategy);
  const Values whole = engine->retrieve(0).to_vector<float>();
  EXPECT_EQ(whole, (Values{1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
  const distribute::Partition partition(8, record.sharding());
  for (int host = 0; host < 8; ++host) EXPECT_EQ(partition.rows_of_host(host), 1);
}

TEST(SpecRowsE, E14_HostsHoldContiguousRowsWhoseSizesDifferByAtMostOne) {
  const auto rows_of = [](int64_t rows, int hosts, distribute::ShardingStrategy strategy) {
    const distribute::Partition partition(rows, {.hosts = hosts, .strategy = strategy});
    IdRows out(hosts);
    for (int64_t row = 0; row < rows; ++row) out[partition.owner(row)].push_back(row);
    return out;
  };
  using enum distribute::ShardingStrategy;
  EXPECT_EQ(rows_of(13, 5, kDiv), (IdRows{{0, 1, 2}, {3, 4, 5}, {6, 7, 8}, {9, 10}, {11, 12}}));
  EXPECT_EQ(rows_of(3, 5, kDiv), (IdRows{{0}, {1}, {2}, {}, {}}));
  EXPECT_EQ(rows_of(8, 3, kDiv), (IdRows{{0, 1, 2}, {3, 4, 5}, {6, 7}}));
  EXPECT_EQ(rows_of(13, 5, kMod), (IdRows{{0, 5, 10}, {1, 6, 11}, {2, 7, 12}, {3, 8}, {4, 9}}));
}

double plain_rate() { return 0.5; }

TEST(SpecRowsE, E15_RatesAreTaggedInOrderOfFirstUse) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  int f_reads = 0;
  int g_reads = 0;
  const EmbeddingOptimizer with_f = tpu::SGD{.learning_rate = [&] { return ++f_reads, 0.25; }};
  const EmbeddingOptimizer with_g = tpu::SGD{.learning_rate = [&] { return ++g_reads, 0.5; }};
  std::vector<Table> tables;
  for (const EmbeddingOptimizer& optimizer :
       {with_f, EmbeddingOptimizer(tpu::SGD{.learning_rate = 0.1}), with_g, with_f}) {
    tables.push_back(table_of(4, 1));
    tables.back()->optimizer = optimizer;
  }
  TPUEmbedding embedding(
      Nest<FeatureConfig>::list({on(tables[0]), on(tables[1]), on(tables[2]), on(tables[3])}), {});
  embedding.enqueue(for_all(Tensors::list({id(0), id(0), id(0), id(0)}), strategy));
  const auto record = distribute::parse_engine_configuration(embedding.record());
  EXPECT_EQ(record.tables[0].learning_rate_tag, 0);
  EXPECT_EQ(record.tables[1].learning_rate_tag, std::nullopt);
  EXPECT_EQ(record.tables[1].learning_rate, 0.1);
  EXPECT_EQ(record.tables[2].learning_rate_tag, 1);
  EXPECT_EQ(record.tables[3].learning_rate_tag, 0);
  strategy.run([&] { embedding.apply_gradients(filled_like(embedding.dequeue(), 0.5F)); });
  EXPECT_EQ(f_reads, 1);
  EXPECT_EQ(g_reads, 1);
  const float expected[] = {-0.25, -0.1F, -0.5, -0.25};
  for (int t = 0; t < 4; ++t) {
    EXPECT_EQ(values_of(embedding, tables[t]->name)[0], expected[t]) << t;
  }
}

TEST(TPUEmbeddingBuildTest, APlainFunctionIsOneRate) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table a = table_of(4, 1);
  const Table b = table_of(4, 1);
  a->optimizer = tpu::SGD{.learning_rate = plain_rate};
  b->optimizer = tpu::Adagrad{.learning_rate = plain_rate};
  TPUEmbedding embedding({{"a", on(a)}, {"b", on(b)}}, {});
  embedding.build(2);
  const auto record = distribute::parse_engine_configuration(embedding.record());
  EXPECT_EQ(record.tables[0].learning_rate_tag, 0);
  EXPECT_EQ(record.tables[1].learning_rate_tag, 0);
}

TEST(SpecRowsE, E16_EqualObjectsHaveEqualRecords) {
  const auto record = [] {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 2});
    const auto scope = strategy.scope();
    const std::vector<std::function<double()>> rates = {[] { return 0.1; }, [] { return 0.2; },
                                                        [] { return 0.3; }};
    std::vector<EmbeddingOptimizer> optimizers;
    for (const auto& rate : rates) optimizers.emplace_back(tpu::Adam{.learning_rate = rate});
    Nest<FeatureConfig>::Dict features;
    const RandomStream stream = {.seed = 11};
    for (uint64_t t = 0; t < 30; ++t) {
      const auto bits = stream.bits(t);
      const Table table = table_of(1 + bits[0] % 100, 1 + bits[1] % 16);
      table->optimizer = bits[2] % 4 < 3 ? optimizers[bits[2] % 4]
                                         : EmbeddingOptimizer(tpu::FTRL{.learning_rate = 0.5});
      features.emplace(str("feature_", bits[3]), on(table));
    }
    TPUEmbedding embedding(features, {});
    embedding.build(16);
    return embedding.record();
  };
  EXPECT_EQ(record(), record());
}

TEST(SpecRowsE, E32_TablesAreVariablesOnTheHostOnly) {
  const Table a = table_of(8, 4, "a", "ones");
  const Table b = table_of(3, 2, "b");
  const Nest<FeatureConfig> features = Nest<FeatureConfig>::list({on(b), on(a), on(b)});
  TPUEmbedding on_host(features, "adagrad");
  EXPECT_FALSE(on_host.built());
  const tpu::EmbeddingTables tables = on_host.embedding_tables();
  EXPECT_TRUE(on_host.built());
  ASSERT_EQ(tables.size(), 2u);
  EXPECT_EQ(tables[0].first, b);
  EXPECT_EQ(tables[1].first, a);
  EXPECT_EQ(tables[1].second.name(), "a");
  EXPECT_TRUE(tables[1].second.trainable());
  EXPECT_EQ(tables[1].second.read().to_vector<float>(), Values(32, 1));
  EXPECT_EQ(on_host.embedding_tables()[1].second, tables[1].second);

  Small s;
  EXPECT_THROW(s.embedding->embedding_tables(), RuntimeError);
  s.embedding->build(2);
  EXPECT_THROW(s.embedding->embedding_tables(), RuntimeError);
}

TEST(SpecRowsE, E35_WithoutAnOptimizerThereAreNoSlots) {
  const Table table = table_of(8, 4, "t");
  TPUEmbedding on_host(one_feature(on(table)), {});
  on_host.build();
  const auto entries = on_host.tracked()->state_entries();
  ASSERT_EQ(entries.size(), 1u);
  EXPECT_EQ(entries[0].name, "t");
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  EXPECT_THAT(message_of<ValueError>([&] { TPUEmbedding(one_feature(on(table)), {}); }),
              HasSubstr("'t'"));
}

TEST(TPUEmbeddingBuildTest, InitialTablesAreEqualOnEngineAndHost) {
  const auto start = [](bool accelerator) {
    set_random_seed(5);
    std::optional<TPUStrategy> strategy;
    std::optional<distribute::Strategy::Scope> scope;
    if (accelerator) {
      scope.emplace(
          strategy.emplace(distribute::TPUStrategyOptions{.num_hosts = 2, .num_cores = 2}));
    }
    const Table a = table_of(5, 2, "a", "ones");
    const Table b = make_table({.vocabulary_size = 7, .dim = 3, .name = "b"});
    TPUEmbedding embedding({{"a", on(a)}, {"b", on(b)}}, "adam");
    embedding.build(2);
    return values_of(embedding, "b");
  };
  EXPECT_EQ(start(true), start(false));
}

}  // namespace keel::mid_level::tpu_embedding_build_test
