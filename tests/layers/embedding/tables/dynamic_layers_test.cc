// Tests layers/embedding/tables/internal/dynamic_embeddings.cc: tables with dynamic ids in
// Embedding, EmbedReduce and DistributedEmbedding.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_layers_test {

using distribute::TPUStrategy;
using layers::DistributedEmbedding;
using layers::EmbedReduce;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::expect_near;
using testing_support::expect_same_bits;
using testing_support::floats;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::sparse;
using testing_support::strings;

// Every option has a value that is not its default.
DynamicVocabulary all_options(KeyType key = KeyType::kInt64) {
  return {
      .key = key,
      .capacity = 40,
      .headroom = 0.25,
      .admission = Admission::count(2, {.window = 7, .max_pending = 30}),
      .eviction = Eviction::lfu({.ttl = 50, .min_l2_norm = 1e-6, .interval = 2, .halve_every = 3}),
      .not_admitted = NotAdmitted::hashed(3, initializers::random_uniform(-1, 1, 5)),
      .clock = Clock::kStep};
}

// Trains a layer of one table on a batch: the loss is the sum of the squares of its output.
template <class Layer>
std::vector<float> train(const Layer& layer, const OptimizerHandle& optimizer,
                         const TensorLike& batch) {
  GradientTape tape;
  const Tensor found = layer(Tensors(batch)).tensor();
  const Tensor loss = ops::sum(found * found);
  const auto variables = layer->trainable_variables();
  optimizer->apply_gradients(tape.gradient(loss, variables), variables);
  return found.template to_vector<float>();
}

OptimizerHandle adagrad() { return optimizers::Adagrad({.learning_rate = 0.5}); }

TEST(DynamicLayersTest, D003ConfigsOfEmbeddingAndEmbedReduceHoldAllOptions) {
  const auto expect_round_trip = [](const auto& layer) {
    const Config config = layer->get_config();
    const LayerHandle<Layer> made = layers::deserialize(
        Config::dict({{"class_name", layer->class_name()}, {"config", config}}));
    EXPECT_EQ(made->get_config(), config);
    const OptimizerHandle one = adagrad(), two = adagrad();
    for (int step = 0; step < 3; ++step) {
      const Tensor batch = ids({1, 5, -7, 5 + step});
      expect_same_bits(train(layer, one, batch), train(made, two, batch));
    }
  };
  expect_round_trip(
      layers::Embedding({.output_dim = 2,
                         .embeddings_initializer = initializers::random_uniform(-1, 1, 3),
                         .dynamic = all_options(),
                         .name = "items"}));
  expect_round_trip(EmbedReduce({.output_dim = 2,
                                 .embeddings_initializer = initializers::random_uniform(-1, 1, 3),
                                 .combiner = "sum",
                                 .dynamic = all_options(),
                                 .name = "items"}));
}

TEST(DynamicLayersTest, ConfigsOfStaticTablesHaveNoNewKey) {
  EXPECT_EQ(layers::Embedding({.input_dim = 2, .output_dim = 2})->get_config().find("dynamic"),
            nullptr);
  EXPECT_EQ(EmbedReduce({.input_dim = 2, .output_dim = 2})->get_config().find("dynamic"), nullptr);
}

keras_rs::Table table_of(const DynamicVocabulary& dynamic, const std::string& placement = "auto",
                         const std::string& combiner = "sum") {
  return keras_rs::make_table({.name = "items",
                               .embedding_dim = 2,
                               .initializer = initializers::random_uniform(-1, 1, 3),
                               .optimizer = tpu::Adagrad({.learning_rate = 0.5}),
                               .combiner = combiner,
                               .placement = placement,
                               .dynamic = dynamic});
}

keras_rs::FeatureConfig feature_of(const keras_rs::Table& table, const Shape& input) {
  return {.name = "item", .table = table, .input_shape = input, .output_shape = {input[0], 2}};
}

TEST(DynamicLayersTest, D003TheConfigOfDistributedEmbeddingHoldsAllOptions) {
  const DistributedEmbedding layer(
      {.feature_configs = feature_of(table_of(all_options()), {kUnknown}), .name = "both"});
  const Config config = layer->get_config();
  const LayerHandle<Layer> made =
      layers::deserialize(Config::dict({{"class_name", layer->class_name()}, {"config", config}}));
  EXPECT_EQ(made->get_config(), config);
  const OptimizerHandle one = adagrad(), two = adagrad();
  for (int step = 0; step < 3; ++step) {
    const Tensor batch = ids({1, 5, -7, 5 + step});
    expect_same_bits(train(layer, one, batch), train(made, two, batch));
  }
}

TEST(DynamicLayersTest, RejectedOptions) {
  const DynamicVocabulary dynamic = {};
  const auto embedding = [&](EmbeddingOptions options) {
    options.output_dim = 2;
    options.name = "items";
    options.dynamic = dynamic;
    return message_of<ValueError>([&] { layers::Embedding{options}; });
  };
  EXPECT_THAT(embedding({.input_dim = 3}), AllOf(HasSubstr("items"), HasSubstr("input_dim")));
  EXPECT_THAT(embedding({.embeddings_regularizer = "l2"}), HasSubstr("embeddings_regularizer"));
  EXPECT_THAT(embedding({.embeddings_constraint = "non_neg"}), HasSubstr("embeddings_constraint"));
  EXPECT_THAT(embedding({.mask_zero = true}), HasSubstr("mask_zero"));
  EXPECT_THAT(embedding({.dtype = "float64"}), HasSubstr("float64"));
  EXPECT_THAT(embedding({.embeddings_initializer = "glorot_uniform"}), HasSubstr("items"));
  EXPECT_THROW(layers::Embedding({.output_dim = 0, .dynamic = dynamic}), ValueError);
  EXPECT_THROW(layers::Embedding({.input_dim = 0, .output_dim = 2}), ValueError);
  EXPECT_THROW(EmbedReduce({.input_dim = 3, .output_dim = 2, .dynamic = dynamic}), ValueError);
  EXPECT_THAT(message_of<ValueError>([&] {
                EmbedReduce({.output_dim = 2, .embeddings_regularizer = "l2", .dynamic = dynamic});
              }),
              HasSubstr("embeddings_regularizer"));

  const layers::Embedding layer({.output_dim = 2, .dynamic = dynamic});
  EXPECT_THROW(layer->dynamic_table(), RuntimeError);  // not built
  layer(ids({1}));
  EXPECT_THAT(message_of<ValueError>([&] { layer->quantize("int8"); }), HasSubstr("quantize"));
  EXPECT_THROW(layers::Embedding({.input_dim = 2, .output_dim = 2})->dynamic_table(), ValueError);
  auto both = *table_of(dynamic);
  both.vocabulary_size = 3;
  EXPECT_THAT(message_of<ValueError>([&] {
                DistributedEmbedding(
                    {.feature_configs = feature_of(keras_rs::make_table(both), {kUnknown})});
              }),
              HasSubstr("exclude each other"));
}

TEST(DynamicLayersTest, D005DtypesOfIds) {
  const layers::Embedding numbers({.output_dim = 2, .dynamic = DynamicVocabulary{}});
  const layers::Embedding words(
      {.output_dim = 2, .dynamic = DynamicVocabulary{.key = KeyType::kString}});
  EXPECT_THROW(numbers(floats({1})), TypeError);
  EXPECT_THROW(numbers(strings({"a"})), TypeError);
  EXPECT_THROW(words(ids({1})), TypeError);
  EXPECT_EQ(numbers(ids({1}).cast(DType::kInt32)).shape(), (Shape{1, 2}));
  EXPECT_EQ(words(strings({"a", ""})).shape(), (Shape{2, 2}));
}

// An Embedding looks up like a dense feature of a TPUEmbedding without an engine.
TEST(DynamicLayersTest, EmbeddingEqualsTPUEmbedding) {
  const DynamicVocabulary dynamic = {.capacity = 3,
                                     .headroom = 0,
                                     .eviction = Eviction::lru(),
                                     .not_admitted = NotAdmitted::default_row()};
  const Initializer initializer = initializers::random_uniform(-1, 1, 3);
  const layers::Embedding one(
      {.output_dim = 2, .embeddings_initializer = initializer, .dynamic = dynamic});
  const layers::TPUEmbedding two(
      {.feature_config = FeatureConfig{
           .table = make_table(
               {.dim = 2, .initializer = initializer, .name = "items", .dynamic = dynamic})}});
  const OptimizerHandle first = adagrad(), second = adagrad();
  for (int64_t step = 0; step < 6; ++step) {
    const Tensor batch = ids({step, 7, step % 2, -step});
    expect_same_bits(train(one, first, batch), train(two, second, batch));
  }
  EXPECT_EQ(one->dynamic_table().size(), 3);
  EXPECT_GT(one->dynamic_table().statistics().evicted_capacity, 0);
  expect_same_bits(one(ids({1, 2, 3, 7})), two(ids({1, 2, 3, 7})));
}

TEST(DynamicLayersTest, IdsOfAnyShapeAndStrings) {
  const layers::Embedding layer(
      {.output_dim = 2, .dynamic = DynamicVocabulary{.key = KeyType::kString}});
  train(layer, adagrad(), strings({"a", "b"}).reshaped({1, 2, 1}));
  const Tensor found = layer(strings({"b", "c"}).reshaped({2, 1}));
  EXPECT_EQ(found.shape(), (Shape{2, 1, 2}));
  const std::vector<float> rows = found.to_vector<float>();
  EXPECT_THAT((std::vector<float>{rows[2], rows[3]}), ElementsAre(0, 0));
  EXPECT_EQ(layer->dynamic_table().keys().to_vector<std::string>(),
            (std::vector<std::string>{"a", "b"}));
}

// The initial row of id i is [i, i].
EmbedReduce counting_rows(const std::string& combiner, bool dynamic,
                          const NotAdmitted& not_admitted = NotAdmitted::zero()) {
  EmbedReduceOptions options = {
      .output_dim = 2, .embeddings_initializer = tpu::RowIdInitializer(), .combiner = combiner};
  if (dynamic) {
    options.dynamic = DynamicVocabulary{.not_admitted = not_admitted};
  } else {
    options.input_dim = 10;
  }
  return EmbedReduce(options);
}

TEST(DynamicLayersTest, D041EmbedReduceEqualsItsStaticTwin) {
  const std::vector<std::function<OptimizerHandle()>> all = {
      [] { return OptimizerHandle(optimizers::SGD({.learning_rate = 0.1})); },
      [] { return OptimizerHandle(optimizers::Adagrad({.learning_rate = 0.1})); },
      [] { return OptimizerHandle(optimizers::Adam({.learning_rate = 0.1})); }};
  for (const std::string combiner : {"sum", "mean", "sqrtn"}) {
    for (const auto& make : all) {
      const EmbedReduce a = counting_rows(combiner, true), b = counting_rows(combiner, false);
      const OptimizerHandle one = make(), two = make();
      const std::vector<TensorLike> batches = {
          ids({1, 2, 2, 3}, {2, 2}), ragged(IdRows{{4, 5}, {}, {9}}),
          sparse(IdRows{{1}, {3, 2, 7}}, 3), ids({8, 1}), ids({1, 2, 2, 3}, {2, 2})};
      for (const TensorLike& batch : batches) {
        expect_same_bits(train(a, one, batch), train(b, two, batch));
      }
    }
  }
}

TEST(DynamicLayersTest, WeightsOfEmbedReduce) {
  const EmbedReduce a = counting_rows("mean", true), b = counting_rows("mean", false);
  for (int64_t id = 0; id < 10; ++id) {
    a->build(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64});
    a->dynamic_table().assign_rows(ids({id}), floats({float(id), float(id)}, {1, 2}));
  }
  const Tensor batch = ids({1, 2, 3, 4}, {2, 2});
  for (const Tensor& weights : {floats({1, 2, 3, 4}, {2, 2}), floats({2, 3}), floats({2}, {})}) {
    expect_same_bits(a(batch, {.weights = weights}), b(batch, {.weights = weights}));
  }
  const TensorLike rows = ragged(IdRows{{1, 5}, {3}});
  const TensorLike weights = ragged(testing_support::FloatRows{{1, 3}, {2}});
  expect_same_bits(a(Tensors(rows), {.weights = weights}).tensor(),
                   b(Tensors(rows), {.weights = weights}).tensor());
}

TEST(DynamicLayersTest, IgnoredIdsDoNotCountInDivisors) {
  const EmbedReduce layer = counting_rows("mean", true, NotAdmitted::ignore());
  layer->build(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64});
  layer->dynamic_table().assign_rows(ids({4}), floats({4, 4}, {1, 2}));
  const Tensor batch = ids({4, 77, 77, 77}, {2, 2});
  const std::vector<float> expected = {4, 4, 0, 0};
  expect_same_bits(layer(batch).to_vector<float>(), expected);
  expect_same_bits(layer(batch, {.weights = floats({2, 5, 1, 1}, {2, 2})}).to_vector<float>(),
                   expected);
}

// Trains layers with one feature in the replicas of a strategy.
Tensor train_distributed(const DistributedEmbedding& layer, distribute::Strategy& strategy,
                         const std::vector<TensorLike>& batches,
                         const std::optional<OptimizerHandle>& optimizer = {}) {
  Tensor out;
  strategy.run([&] {
    GradientTape tape;
    for (const TensorLike& batch : batches) {
      const Tensor found = layer(layer->preprocess(Tensors(batch))).tensor();
      const auto variables = layer->trainable_variables();
      const auto gradients = tape.gradient(ops::sum(found * found), variables);
      if (optimizer) (*optimizer)->apply_gradients(gradients, variables);
    }
  });
  strategy.run([&] { out = layer(Tensors(batches[0])).tensor(); });
  return out;
}

TEST(DynamicLayersTest, D077DistributedEmbeddingEqualsTPUEmbedding) {
  const DynamicVocabulary dynamic = {.key = KeyType::kString,
                                     .capacity = 3,
                                     .headroom = 0,
                                     .eviction = Eviction::lru(),
                                     .not_admitted = NotAdmitted::hashed(2)};
  const Tensor one = strings({"a", "b"}), two = strings({"c", "d"}), three = strings({"a", "a"});
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const DistributedEmbedding layer(
      {.feature_configs = feature_of(table_of(dynamic, "sparsecore"), {kUnknown})});
  for (const Tensor& batch : {one, two, three}) train_distributed(layer, strategy, {batch});
  const DynamicTable table = layer->dynamic_table("items");
  EXPECT_EQ(table.size(), 3);
  const Tensor rows = layer->get_embedding_tables().at("items");
  expect_same_bits(rows, table.rows(table.keys()));

  distribute::TPUStrategy other({.num_cores = 1});
  const auto other_scope = other.scope();
  const Table config = make_table({.dim = 2,
                                   .initializer = initializers::random_uniform(-1, 1, 3),
                                   .optimizer = tpu::Adagrad({.learning_rate = 0.5}),
                                   .combiner = "sum",
                                   .name = "items",
                                   .dynamic = dynamic});
  const layers::TPUEmbedding same({.feature_config = FeatureConfig{.table = config}});
  for (const Tensor& batch : {one, two, three}) {
    other.run([&] {
      GradientTape tape;
      const Tensor found = same(batch);
      tape.gradient(ops::sum(found * found), same->trainable_variables());
    });
  }
  const DynamicTable expected = same->dynamic_table(config);
  EXPECT_EQ(table.keys().to_vector<std::string>(), expected.keys().to_vector<std::string>());
  expect_same_bits(rows, expected.rows(expected.keys()));
  expect_same_bits(table.state().fallback, expected.state().fallback);
}

TEST(DynamicLayersTest, D077PlacementsStartWithEqualRowsAndStreams) {
  const auto rows_of = [](const std::string& placement) {
    set_random_seed(11);
    const auto table = [&](const std::string& name, bool dynamic) {
      keras_rs::TableConfig config = {.name = name,
                                      .embedding_dim = 2,
                                      .optimizer = tpu::SGD({.learning_rate = 0.5}),
                                      .combiner = "sum",
                                      .placement = placement};
      if (dynamic) {
        config.dynamic = DynamicVocabulary{.not_admitted = NotAdmitted::default_row()};
      } else {
        config.vocabulary_size = 8;
      }
      return keras_rs::make_table(config);
    };
    Nest<keras_rs::FeatureConfig>::Dict features;
    features.emplace("a", feature_of(table("first", true), {kUnknown}));
    features.emplace("b", feature_of(table("second", false), {kUnknown}));
    TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    const DistributedEmbedding layer({.feature_configs = features});
    const Tensors batch = {{"a", ids({9, -1})}, {"b", ids({1, 2})}};
    std::vector<std::vector<float>> out;
    strategy.run([&] {
      GradientTape tape;
      const Tensors found = layer(batch);
      for (const char* name : {"a", "b"}) {
        out.push_back(found[name].tensor().to_vector<float>());
      }
    });
    out.push_back(layer->dynamic_table("first").state().fallback.to_vector<float>());
    EXPECT_EQ(layer->table_stacks().size(), placement == "sparsecore" ? 2U : 0U);  // D-076
    return out;
  };
  EXPECT_EQ(rows_of("sparsecore"), rows_of("default_device"));
}

TEST(DynamicLayersTest, D077TheDefaultDeviceTrainsInSeveralReplicas) {
  const auto state_of = [](const std::string& placement) {
    TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    const DistributedEmbedding layer(
        {.feature_configs = feature_of(table_of({}, placement), {kUnknown})});
    const OptimizerHandle optimizer = adagrad();
    for (int step = 0; step < 3; ++step) {
      strategy.run([&] { train(layer, optimizer, ids({1, 2, 1 + step})); });
    }
    return layer->dynamic_table("items").state();
  };
  const DynamicTableState variable = state_of("default_device"), engine = state_of("sparsecore");
  EXPECT_EQ(variable.keys.to_vector<int64_t>(), engine.keys.to_vector<int64_t>());
  EXPECT_EQ(variable.count.to_vector<int64_t>(), engine.count.to_vector<int64_t>());
  EXPECT_EQ(variable.statistics.hits, engine.statistics.hits);
  expect_near(variable.rows.to_vector<float>(), engine.rows.to_vector<float>(), {.absolute = 1e-5});
}

TEST(DynamicLayersTest, D076ADynamicTableInAListOfTablesToStackIsAValueError) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  EXPECT_THAT(message_of<ValueError>([&] {
                DistributedEmbedding({.feature_configs = feature_of(table_of({}), {kUnknown}),
                                      .table_stacking = std::vector<std::string>{"items"}});
              }),
              AllOf(HasSubstr("'items'"), HasSubstr("dynamic ids")));
}

TEST(DynamicLayersTest, D077LimitsOfIdsCountKeyShards) {
  // Keys 0, 1, 42 and -1 are in shards 904, 441, 31 and 0: with two cores, 0 is in partition 1.
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  keras_rs::TableConfig config = *table_of({});
  config.max_ids_per_partition = 2;
  config.max_unique_ids_per_partition = 2;
  const DistributedEmbedding layer(
      {.feature_configs = feature_of(keras_rs::make_table(config), {kUnknown}),
       .id_limit_policy = IdLimitPolicy::kDrop});
  strategy.run([&] { layer(ids({1, 42, -1, 0})); });
  EXPECT_EQ(layer->id_statistics().at("items").max_ids_per_partition, 3);
  EXPECT_EQ(layer->id_statistics().at("items").dropped_ids, 2);  // one in each replica
}

TEST(DynamicLayersTest, SetEmbeddingTablesNamesAssignRows) {
  const DistributedEmbedding layer({.feature_configs = feature_of(table_of({}), {kUnknown})});
  layer(ids({1}));
  EXPECT_THAT(message_of<ValueError>(
                  [&] { layer->set_embedding_tables({{"items", floats({1, 1}, {1, 2})}}); }),
              HasSubstr("assign_rows"));
  EXPECT_THROW(layer->dynamic_table("users"), ValueError);
}

TEST(DynamicLayersTest, D079FitAndPredictWithEmbedding) {
  const Tensor input = layers::input({.dtype = DType::kString, .name = "item"});
  const layers::Embedding embedding(
      {.output_dim = 2, .dynamic = DynamicVocabulary{.key = KeyType::kString}, .name = "items"});
  const Functional model({.inputs = input, .outputs = embedding(input)});
  model->compile({.optimizer = "adam", .loss = "mse"});
  testing::internal::CaptureStdout();
  model->fit(strings({"a", "b", "a"}), floats({1, 1, 1, 1, 1, 1}, {3, 2}),
             {.epochs = 2, .batch_size = 3, .verbose = Verbose::kOneLine});
  EXPECT_THAT(testing::internal::GetCapturedStdout(), HasSubstr("Embedding items has 2 rows"));
  EXPECT_EQ(model->predict(strings({"b", "new"})).tensor().shape(), (Shape{2, 2}));
}

}  // namespace keel::dynamic_layers_test
