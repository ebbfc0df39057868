// The options of the layer: storage of the tables, batch shapes, slots, files.
// Tests layers/embedding/tpu_embedding_config.cc.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/internal/active_engine.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/embedding/tpu_parameters.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"

namespace keel::tpu_embedding_options_test {

using distribute::CPUStrategy;
using distribute::TPUStrategy;
using fixture::counting;
using fixture::expect_rows;
using fixture::IdRows;
using fixture::ids;
using fixture::ragged;
using fixture::Standard;
using layers::TPUEmbedding;
using testing::HasSubstr;
using testing_support::message_of;

Nest<FeatureConfig> one_feature() {
  return FeatureConfig{.table = make_table({.vocabulary_size = 8, .dim = 2, .name = "t"})};
}

TPUEmbedding unsupported(const Nest<FeatureConfig>& features,
                         const EmbeddingOptimizer& optimizer = {},
                         const Tensors& like = Standard::ragged_batch()) {
  TPUEmbedding out({.feature_config = features,
                    .optimizer = optimizer,
                    .embedding_feature = EmbeddingFeature::kUnsupported});
  out->build(specs_of(like));
  return out;
}

TEST(EmbeddingFeatureTest, WithoutAnEngineTheTablesAreVariablesThatAllReplicasRead) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Standard f;
  const TPUEmbedding layer = unsupported(f.features());
  layer->update_embedding_table(f.video, counting(8, 4));
  layer->update_embedding_table(f.user, counting(16, 2));
  ASSERT_EQ(layer->trainable_variables().size(), 2U);
  EXPECT_EQ(layer->trainable_variables()[0].name(), "video");
  const auto losses = strategy.run(
      [&] { return fixture::squares_loss(layer(Standard::sparse_batch()), 4).item<float>(); });
  EXPECT_EQ(losses[1], 335);
  // The engine is free for another layer.
  EXPECT_NO_THROW(f.layer("sgd", Standard::ragged_batch()));
}

TEST(EmbeddingFeatureTest, TheCallersOptimizerTrainsTablesWithoutAnEngine) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Tensors row = ids({1}, {1});
  const TPUEmbedding layer = unsupported(
      FeatureConfig{.table = make_table({.vocabulary_size = 2, .dim = 1, .initializer = "zeros"})},
      {}, row);
  const optimizers::SGD sgd({.learning_rate = 0.5});
  strategy.run([&] {
    std::vector<Gradient> gradients;
    {
      GradientTape tape;
      gradients = tape.gradient(ops::sum(layer(row).tensor()), layer->trainable_variables());
    }
    sgd->apply_gradients(gradients, layer->trainable_variables());
  });
  expect_rows(layer->embedding_tables()[0].second, {{0}, {-1}});
}

TEST(EmbeddingFeatureTest, DenseIdsKeepTheirShapeWithoutAnEngine) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const Tensors column = ids({1, 2}, {2, 1});
  const TPUEmbedding layer = unsupported(one_feature(), {}, column);
  EXPECT_EQ(strategy.run([&] { return layer(column).tensor(); })[0].shape(), Shape({2, 1, 2}));
}

TEST(EmbeddingFeatureTest, CallsOutsideTheStrategyAreErrors) {
  const Tensors row = ids({1}, {1});
  TPUStrategy strategy({.num_cores = 1});
  std::optional<TPUEmbedding> layer;
  {
    const auto scope = strategy.scope();
    layer = unsupported(one_feature(), {}, row);
  }
  EXPECT_THROW((*layer)(row), RuntimeError);
}

TEST(EmbeddingFeatureTest, ACallUnderAnotherStrategyBuildsNothing) {
  const Tensors row = ids({1}, {1});
  const TPUEmbedding on_host({.feature_config = one_feature(), .optimizer = "sgd"});
  TPUStrategy strategy({.num_cores = 1});
  std::optional<TPUEmbedding> on_engine;
  {
    const auto scope = strategy.scope();
    on_engine.emplace(TPUEmbeddingOptions{.feature_config = one_feature(), .optimizer = "sgd"});
    EXPECT_THROW(on_host(row), RuntimeError);
    EXPECT_FALSE(on_host->built());
  }
  EXPECT_THROW((*on_engine)(row), RuntimeError);
  EXPECT_FALSE((*on_engine)->built());
  EXPECT_EQ(distribute::active_engine(strategy), nullptr);
}

TEST(EmbeddingFeatureTest, EmbeddingFeatureV2IsRejectedUnderATPUStrategy) {
  const TPUEmbeddingOptions options = {.feature_config = one_feature(),
                                       .optimizer = "sgd",
                                       .embedding_feature = EmbeddingFeature::kV2};
  EXPECT_NO_THROW(TPUEmbedding{options}) << "nothing is checked on the host";
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const std::string text = message_of<ValueError>([&] { TPUEmbedding{options}; });
  EXPECT_THAT(text, HasSubstr("DistributedEmbedding"));
}

TEST(EmbeddingFeatureTest, OnlyAnEngineNeedsAnOptimizer) {
  EXPECT_NO_THROW(TPUEmbedding({.feature_config = one_feature()}));
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  EXPECT_NO_THROW(TPUEmbedding(
      {.feature_config = one_feature(), .embedding_feature = EmbeddingFeature::kUnsupported}));
  EXPECT_THROW(TPUEmbedding({.feature_config = one_feature()}), ValueError);
}

TEST(TPUEmbeddingOptimizerTest, ParametersOfTheV1EngineAreRejected) {
  const EmbeddingOptimizer v1 = tpu::AdagradParameters{.learning_rate = 0.1};
  const std::string text = message_of<ValueError>(
      [&] { TPUEmbedding({.feature_config = one_feature(), .optimizer = v1}); });
  EXPECT_THAT(text, HasSubstr("'t'"));
  EXPECT_THAT(text, HasSubstr("AdagradParameters"));
  EXPECT_THROW(
      TPUEmbedding({.feature_config =
                        FeatureConfig{.table = make_table(
                                          {.vocabulary_size = 4, .dim = 2, .optimizer = v1})}}),
      ValueError);
}

TEST(BatchSizeTest, BatchSizeIsPositiveAndAMultipleOfTheReplicas) {
  const auto make = [](int64_t batch_size) {
    return TPUEmbedding(
        {.feature_config = one_feature(), .optimizer = "sgd", .batch_size = batch_size});
  };
  EXPECT_THROW(make(0), ValueError);
  EXPECT_NO_THROW(make(3));
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  EXPECT_THROW(make(3), ValueError);
  EXPECT_NO_THROW(make(4));
}

TEST(BatchSizeTest, BatchSizeReplacesUnknownRows) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Table table = make_table({.vocabulary_size = 8, .dim = 2});
  const TPUEmbedding layer({.feature_config = Nest<FeatureConfig>::list(
                                {FeatureConfig{.table = table},
                                 FeatureConfig{.table = table, .max_sequence_length = 3}}),
                            .optimizer = "sgd",
                            .batch_size = 8});
  const TensorSpec any = {
      .shape = {kUnknown, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged};
  layer->build(Specs::list({any, any}));
  const auto engine = distribute::active_engine(strategy);
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->configuration().batch_size_per_tensor_core, 4);
  EXPECT_EQ(engine->configuration().features[0].input_shape, Shape({4}));
  EXPECT_EQ(engine->configuration().features[1].input_shape, Shape({4, 3}));
}

TEST(BatchSizeTest, AnOutputShapeThatDisagreesIsAnErrorWithThePath) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const FeatureConfig feature = {.table = make_table({.vocabulary_size = 8, .dim = 2}),
                                 .output_shape = {{3}}};
  const TPUEmbedding layer(
      {.feature_config = {{"f", feature}}, .optimizer = "sgd", .batch_size = 8});
  const TensorSpec any = {
      .shape = {kUnknown, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged};
  const std::string text =
      message_of<ValueError>([&] { layer->build(Specs({{"f", Specs(any)}})); });
  EXPECT_THAT(text, HasSubstr("'f'"));
}

TEST(OutputShapeTest, DenseAndSparseIdsFoldIntoItOnTheEngine) {
  const FeatureConfig feature = {.output_shape = Shape{2, 2}};
  fixture::OneFeature one = {
      .table_values = counting(16, 2), .input = ids({3, 2, 1, 0}, {4, 1}), .feature = feature};
  fixture::expect_tensor(look_up_on_engine(one), {2, 2, 2}, {6, 7, 4, 5, 2, 3, 0, 1});
  one.input = fixture::sparse(IdRows{{3}, {2}, {}, {1}}, 2);
  fixture::expect_tensor(look_up_on_engine(one), {2, 2, 2}, {6, 7, 4, 5, 0, 0, 2, 3});
  one.input = ids({3, 2, 1}, {3});
  EXPECT_THROW(look_up_on_engine(one), ValueError);
}

std::vector<std::string> slot_names_of(const TPUEmbedding& layer) {
  std::vector<std::string> out;
  for (const StateEntry& entry : layer->state_entries()) {
    if (entry.kind == StateEntry::Kind::kSlot) out.push_back(entry.name);
  }
  return out;
}

TEST(LayerSlotsTest, AnEmbeddingOptimizerOnTheHostDecidesWhichSlotsTheLayerKeeps) {
  using Names = std::vector<std::string>;
  const Tensors row = ids({1}, {1});
  const auto built = [&](const EmbeddingOptimizer& optimizer) {
    TPUEmbedding out({.feature_config = one_feature(), .optimizer = optimizer});
    EXPECT_TRUE(slot_names_of(out).empty()) << "not before it is built";
    out->build(specs_of(row));
    EXPECT_EQ(out->variables().size(), 1U);
    return out;
  };
  EXPECT_EQ(slot_names_of(built("adam")), (Names{"t/momenta", "t/velocities"}));
  EXPECT_TRUE(slot_names_of(built({})).empty());
  // A Keras optimizer keeps its own slots.
  EXPECT_TRUE(slot_names_of(built(optimizers::Adagrad({}))).empty());
  EXPECT_EQ(fixture::state_of(built("adagrad"), "t/accumulators").data<float>()[0], 0.1F);
}

TEST(LayerSlotsTest, VariableNamesAreEqualOnEngineAndHost) {
  const auto names = [] {
    const TPUEmbedding layer = Standard().layer("ftrl", Standard::ragged_batch());
    std::vector<std::string> out;
    for (const StateEntry& entry : layer->state_entries()) out.push_back(entry.name);
    std::ranges::sort(out);
    return out;
  };
  const auto on_host = names();
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  EXPECT_EQ(names(), on_host);
  EXPECT_EQ(on_host.size(), 6U);
}

TEST(TPUEmbeddingFileTest, EveryOptionRoundTrips) {
  const Table table = make_table({.vocabulary_size = 8,
                                  .dim = 2,
                                  .initializer = tpu::RowIdInitializer(3),
                                  .name = "t",
                                  .quantization_config = QuantizationConfig(5, -1, 1),
                                  .storage_dtype = "bfloat16"});
  const TPUEmbedding layer(
      {.feature_config = {{"a", FeatureConfig{.table = table, .id_policy = IdPolicy::use_row(2)}},
                          {"b", FeatureConfig{.table = table, .id_policy = IdPolicy::ignore()}}},
       .optimizer = "adagrad",
       .pipeline_execution_with_tensor_core = true,
       .batch_size = 64,
       .embedding_feature = EmbeddingFeature::kUnsupported});
  const Config config = parse_json(to_json(layer->get_config()));
  EXPECT_TRUE(config["pipeline_execution_with_tensor_core"].boolean());
  EXPECT_EQ(config["batch_size"].integer(), 64);
  EXPECT_EQ(config["embedding_feature"].string(), "UNSUPPORTED");
  const auto again = TPUEmbeddingLayer::from_config(config);
  EXPECT_EQ(again->get_config(), layer->get_config());
  const FeatureConfig a = again->feature_config()["a"].leaf();
  EXPECT_EQ(a.id_policy, IdPolicy::use_row(2));
  EXPECT_EQ(again->feature_config()["b"].leaf().id_policy, IdPolicy::ignore());
  ASSERT_TRUE(a.table->quantization_config);
  EXPECT_EQ(a.table->quantization_config->num_buckets, 5);
  EXPECT_EQ(a.table->quantization_config->lower, -1);
  EXPECT_EQ(a.table->storage_dtype, "bfloat16");
  expect_rows((*a.table->initializer)({2, 1}), {{3}, {4}});
}

TEST(TPUEmbeddingFileTest, ConfigsWithoutTheNewerKeysAreRead) {
  const auto layer = TPUEmbeddingLayer::from_config(parse_json(
      R"({"name": "tables", "tables": [{"name": "t", "vocabulary_size": 9, "dim": 4}],
          "feature_config": {"feature": {"table": 0}}})"));
  EXPECT_TRUE(layer->get_config()["batch_size"].is_null());
  EXPECT_TRUE(layer->get_config()["embedding_feature"].is_null());
}

TEST(TPUEmbeddingFileTest, UnknownEmbeddingFeaturesAreErrors) {
  Config config = TPUEmbedding({.feature_config = one_feature()})->get_config();
  config.set("embedding_feature", "V9");
  EXPECT_THROW(TPUEmbeddingLayer::from_config(config), ValueError);
}

}  // namespace keel::tpu_embedding_options_test
