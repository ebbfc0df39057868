#include <keel/layers/embedding/tpu_embedding.h>

#include <cmath>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/sgd.h>

#include "tests/support/embedding_fixture.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::embedding_tpu_embedding_test {

using distribute::TPUStrategy;
using fixture::Standard;
using layers::TPUEmbedding;
using testing::HasSubstr;
using testing_support::counting;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::ids;
using testing_support::int_spec;
using testing_support::message_of;
using testing_support::values_of;
using Values = std::vector<float>;

const Values kWatched = {0, 1, 2, 3, 4, 6, 8, 10, 4, 6, 8, 10, 4, 5, 6, 7};
const Values kFriends = {6, 7, 2, 3, 6, 7, 2, 3};

TEST(TPUEmbeddingTest, SparseAndRaggedRowsArePooledAlikeOnTheHost) {
  const Standard f;
  const TPUEmbedding layer = f.unbuilt_layer();
  layer->build(specs_of(Standard::sparse_batch()));
  f.load(layer);
  for (const Tensors& features : {Standard::ragged_batch(0, 4), Standard::sparse_batch()}) {
    const Tensors out = layer(features);
    EXPECT_EQ(values_of(out["watched"]), kWatched);
    EXPECT_EQ(values_of(out["friends"]), kFriends);
  }
}

TEST(TPUEmbeddingTest, ReplicasLookUpTheirOwnRows) {
  const Standard f;
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding layer = f.unbuilt_layer();
  layer->build(specs_of(Standard::ragged_batch(0, 2)));
  f.load(layer);
  const auto out = strategy.run([&] {
    const int r = current_replica_context()->replica;
    return layer(Standard::ragged_batch(2 * r, 2 * r + 2))["watched"].tensor();
  });
  EXPECT_EQ(out[0].to_vector<float>(), Values(kWatched.begin(), kWatched.begin() + 8));
  EXPECT_EQ(out[1].to_vector<float>(), Values(kWatched.begin() + 8, kWatched.end()));
}

TEST(TPUEmbeddingTest, TheLossOfTheFixtureMatchesTensorFlow) {
  const Standard f;
  const TPUEmbedding layer = f.unbuilt_layer();
  layer->build(specs_of(Standard::ragged_batch(0, 2)));
  f.load(layer);
  float loss = 0;
  for (const TensorLike& t : flatten(layer(Standard::ragged_batch(0, 2)))) {
    loss += ops::sum(ops::square(t.tensor())).item<float>() / 2;
  }
  EXPECT_EQ(loss, 335);
}

TEST(TPUEmbeddingTest, SequencesAreCutAndPadded) {
  const Table user = make_table({.vocabulary_size = 16, .dim = 2});
  const Nest<FeatureConfig> config = FeatureConfig{.table = user, .max_sequence_length = 2};
  const Tensors rows = RaggedTensor::from_rows<int64_t>({{3}, {0, 1, 2}});
  const Values expected = {6, 7, 0, 0, 0, 1, 2, 3};
  const TPUEmbedding host({.feature_config = config});
  host->build(specs_of(rows));
  host->update_embedding_table(user, counting(16, 2));
  EXPECT_EQ(values_of(host(rows)), expected);
  EXPECT_EQ(host(rows).tensor().shape(), Shape({2, 2, 2}));

  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding engine({.feature_config = config, .optimizer = "sgd"});
  engine->build(specs_of(rows));
  engine->update_embedding_table(user, counting(16, 2));
  EXPECT_EQ(strategy.run([&] { return values_of(engine(rows)); })[1], expected);
}

TEST(TPUEmbeddingTest, WeightsScaleIdsAndAnEmptyEntryIsAllOnes) {
  const Standard f;
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const TPUEmbedding layer = f.unbuilt_layer();
  const Tensors features = Standard::ragged_batch(0, 4);
  layer->build(specs_of(features));
  f.load(layer);
  const RaggedTensor& watched = features["watched"].leaf().ragged();
  const RaggedTensor halves{Tensor::full<float>({watched.values.size()}, 0.5F), watched.row_splits};
  const Nest<std::optional<TensorLike>> weights = {{"watched", std::optional<TensorLike>(halves)},
                                                   {"favorited", std::optional<TensorLike>()},
                                                   {"friends", std::optional<TensorLike>()}};
  const auto out = strategy.run([&] { return layer(features, {.weights = weights}); });
  Values expected = kWatched;
  for (float& x : expected) x /= 2;
  EXPECT_EQ(values_of(out[0]["watched"]), expected);
  EXPECT_EQ(values_of(out[0]["friends"]), kFriends);
}

TEST(TPUEmbeddingTest, DenseIdsOfBothShapesLoseTheirLastOneOnTheEngine) {
  const Table user = make_table({.vocabulary_size = 16, .dim = 2});
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const TPUEmbedding layer({.feature_config = FeatureConfig{.table = user}, .optimizer = "sgd"});
  layer->build(Specs(TensorSpec{.shape = {2}, .dtype = DType::kInt64}));
  layer->update_embedding_table(user, counting(16, 2));
  strategy.run([&] {
    EXPECT_EQ(layer(ids({3, 1})).to_vector<float>(), (Values{6, 7, 2, 3}));
    const Tensor column = layer(ids({3, 1}).reshaped({2, 1}));
    EXPECT_EQ(column.shape(), Shape({2, 2}));
    EXPECT_THROW(layer(ids({3, 1}).reshaped({1, 2})), ValueError);
  });
}

TEST(TPUEmbeddingTest, DenseIdsOnTheHostAreAPlainGather) {
  const Standard f;
  const TPUEmbedding layer({.feature_config = FeatureConfig{.table = f.user}});
  layer->build(Specs(TensorSpec{.shape = {2, 1}, .dtype = DType::kInt64}));
  layer->update_embedding_table(f.user, counting(16, 2));
  const Tensor out = layer(ids({3, 1}).reshaped({2, 1}));
  EXPECT_EQ(out.shape(), Shape({2, 1, 2}));
  EXPECT_EQ(out.to_vector<float>(), (Values{6, 7, 2, 3}));
}

TEST(TPUEmbeddingTest, ServingConfigLooksUpOnTheHostUnderAnyStrategy) {
  const Standard f;
  TPUStrategy strategy({.num_cores = 2});
  std::optional<TPUEmbedding> layer;
  {
    const auto scope = strategy.scope();
    layer = f.unbuilt_layer();
    (*layer)->build(specs_of(Standard::ragged_batch(0, 2)));
    f.load(*layer);
  }
  const Nest<FeatureConfig> serving = FeatureConfig{.table = f.user, .max_sequence_length = 2};
  const Tensors rows = RaggedTensor::from_rows<int64_t>({{3}, {0, 1, 2}});
  EXPECT_EQ(values_of((*layer)(rows, {.serving_config = serving})),
            (Values{6, 7, 0, 0, 0, 1, 2, 3}));
  const Nest<FeatureConfig> foreign =
      FeatureConfig{.table = make_table({.vocabulary_size = 16, .dim = 2})};
  EXPECT_THROW((*layer)(rows, {.serving_config = foreign}), ValueError);
}

TEST(TPUEmbeddingTest, CallsUnderTheOtherKindOfStrategyAreErrors) {
  const Standard f;
  const TPUEmbedding host = f.unbuilt_layer();
  host->build(specs_of(Standard::ragged_batch(0, 2)));
  TPUStrategy strategy({.num_cores = 2});
  EXPECT_THROW(strategy.run([&] { host(Standard::ragged_batch(0, 2)); }), RuntimeError);
  std::optional<TPUEmbedding> engine;
  {
    const auto scope = strategy.scope();
    engine = f.unbuilt_layer();
    (*engine)->build(specs_of(Standard::ragged_batch(0, 2)));
  }
  EXPECT_THROW((*engine)(Standard::ragged_batch(0, 2)), RuntimeError);
}

TEST(TPUEmbeddingTest, InvalidIdsAreErrorsThatNameTheFeatureAndTheId) {
  const Standard f;
  const auto expect_named = [](const auto& call, const char* id) {
    const std::string text = message_of<ValueError>([&] { call(); });
    EXPECT_THAT(text, HasSubstr("watched"));
    EXPECT_THAT(text, HasSubstr(id));
  };
  const auto with_id = [](int64_t id) {
    Tensors::Dict features = Standard::ragged_batch(0, 2).entries();
    features["watched"] = RaggedTensor::from_rows<int64_t>({{0}, {id}});
    return Tensors(features);
  };
  const TPUEmbedding host = f.unbuilt_layer();
  host->build(specs_of(Standard::ragged_batch(0, 2)));
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding engine = f.unbuilt_layer();
  engine->build(specs_of(Standard::ragged_batch(0, 2)));
  for (int64_t id : {8, -1, 1000}) {
    const std::string text = std::to_string(id);
    expect_named([&] { strategy.run([&] { engine(with_id(id)); }); }, text.c_str());
    distribute::CPUStrategy cpu;
    const auto on_host = cpu.scope();
    expect_named([&] { host(with_id(id)); }, text.c_str());
  }
}

TEST(TPUEmbeddingTest, WrongStructuresWeightsAndRanksAreErrors) {
  const Standard f;
  const TPUEmbedding layer = f.unbuilt_layer();
  const Tensors good = Standard::ragged_batch(0, 2);
  layer->build(specs_of(good));
  Tensors::Dict missing = good.entries();
  missing.erase("friends");
  EXPECT_THROW(layer(Tensors(missing)), ValueError);
  EXPECT_THROW(layer(Tensors::list({good["favorited"], good["friends"], good["watched"]})),
               TypeError);
  Tensors::Dict dense = good.entries();
  dense["watched"] = ids({0, 1});
  const Nest<std::optional<TensorLike>> weights = {
      {"watched", std::optional<TensorLike>(Tensor::full<float>({2}, 1))},
      {"favorited", std::optional<TensorLike>()},
      {"friends", std::optional<TensorLike>()}};
  EXPECT_THROW(layer(Tensors(dense), {.weights = weights}), ValueError);
  EXPECT_THROW(layer(good, {.weights = weights}), ValueError) << "dense weights of ragged ids";
  Tensors::Dict strings = good.entries();
  strings["watched"] = Tensor::from<std::string>({"a"}, {1});
  EXPECT_THROW(layer(Tensors(strings)), ValueError);
}

TEST(TPUEmbeddingTest, ConstructionChecksTablesAndOptimizers) {
  const auto two = [](Table a, Table b) {
    return Nest<FeatureConfig>(
        {{"a", FeatureConfig{.table = std::move(a)}}, {"b", FeatureConfig{.table = std::move(b)}}});
  };
  EXPECT_THROW(make_table({.vocabulary_size = 0, .dim = 4}), ValueError);
  EXPECT_THROW(make_table({.vocabulary_size = 4, .dim = 0}), ValueError);
  EXPECT_THROW(make_table({.vocabulary_size = 4, .dim = 4, .combiner = "min"}), ValueError);
  const auto named = [](const char* name) {
    return make_table({.vocabulary_size = 4, .dim = 2, .name = name});
  };
  EXPECT_THROW(TPUEmbedding({.feature_config = two(named("t"), named("t"))}), ValueError);
  EXPECT_THROW(TPUEmbedding({.feature_config = two(named("table_1"), named(""))}), ValueError);
  EXPECT_THROW(TPUEmbedding({.feature_config = FeatureConfig{}}), ValueError);
  EXPECT_THROW(TPUEmbedding({.feature_config =
                                 FeatureConfig{.table = named("t"), .max_sequence_length = -1}}),
               ValueError);
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  EXPECT_THROW(TPUEmbedding({.feature_config = FeatureConfig{.table = named("t")}}), ValueError);
}

TEST(TPUEmbeddingTest, UserObjectsAreNotModified) {
  const Table table = make_table({.vocabulary_size = 4, .dim = 2});
  const TPUEmbedding a({.feature_config = FeatureConfig{.table = table}, .optimizer = "sgd"});
  EXPECT_TRUE(table->name.empty());
  EXPECT_FALSE(table->optimizer);
}

TEST(TPUEmbeddingTest, ServingConfigNeedsABuiltLayerAndValues) {
  const Standard f;
  const TPUEmbedding layer = f.unbuilt_layer();
  const Nest<FeatureConfig> serving = FeatureConfig{.table = f.user};
  const Tensors rows = RaggedTensor::from_rows<int64_t>({{3}});
  EXPECT_THROW(layer(rows, {.serving_config = serving}), RuntimeError);
  layer->build(specs_of(Standard::ragged_batch(0, 2)));
  const Tensors symbolic = layers::ragged_input({.dtype = DType::kInt64});
  EXPECT_THROW(layer(symbolic, {.serving_config = serving}), RuntimeError);
}

TEST(TPUEmbeddingTest, LaterChangesToAUsersTableHaveNoEffect) {
  const Table table = make_table({.vocabulary_size = 16, .dim = 2, .combiner = "sum"});
  const TPUEmbedding layer({.feature_config = FeatureConfig{.table = table}});
  const Tensors rows = RaggedTensor::from_rows<int64_t>({{1, 2}});
  layer->build(specs_of(rows));
  layer->update_embedding_table(table, counting(16, 2));
  table->combiner = "mean";
  EXPECT_EQ(values_of(layer(rows)), (Values{6, 8}));
}

TEST(TPUEmbeddingTest, SharedOptimizersRemainSharedAfterReadingTheConfig) {
  const Standard f;
  const optimizers::Adagrad adagrad({.learning_rate = 0.25});
  const TPUEmbedding layer = f.unbuilt_layer(adagrad);
  const auto again = TPUEmbeddingLayer::from_config(layer->get_config());
  EXPECT_EQ(again->get_config(), layer->get_config());
  std::vector<const Optimizer*> sources;
  for (const FeatureConfig& feature : flatten(again->feature_config())) {
    sources.push_back(feature.table->optimizer->source.get());
  }
  EXPECT_EQ(sources[0], sources[2]);
  EXPECT_EQ(sources[0]->learning_rate(), 0.25);
}

TEST(TPUEmbeddingTest, UpdatingATableOfAnotherLayerDoesNothing) {
  const Standard f;
  const TPUEmbedding layer({.feature_config = f.features()});
  layer(Standard::ragged_batch(0, 4));
  const auto before = layer->embedding_tables();
  const Table other = make_table({.vocabulary_size = 8, .dim = 4, .name = "other"});
  layer->update_embedding_table(other, Tensor::full({8, 4}, 7.0F));
  const auto after = layer->embedding_tables();
  for (size_t t = 0; t < before.size(); ++t) {
    EXPECT_EQ(before[t].second.to_vector<float>(), after[t].second.to_vector<float>());
  }
}

// Returns the error of a call, which must be the same under both strategies.
std::string error_of_call(const Tensors& features, const TPUEmbeddingCallOptions& options = {}) {
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  std::string text;
  for (distribute::Strategy* strategy : std::initializer_list<distribute::Strategy*>{&cpu, &tpu}) {
    const auto scope = strategy->scope();
    const Standard f;
    const TPUEmbedding layer({.feature_config = f.features(), .optimizer = optimizers::SGD({})});
    try {
      strategy->run([&] { return layer(features, options); });
      return "no error under " + strategy->name();
    } catch (const ValueError& error) {
      EXPECT_TRUE(text.empty() || text == error.what()) << text << error.what();
      text = error.what();
    }
  }
  return text;
}

TEST(TPUEmbeddingTest, RejectsWeightsThatAreNaNOrInfiniteByNameAndPosition) {
  const Tensors features = Standard::ragged_batch(0, 4);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    const RaggedTensor& splits = features["friends"].leaf().ragged();
    const RaggedTensor weights = {Tensor::from<float>({1, 1, 1, 1, 1, bad, 1, 1}, {8}),
                                  splits.row_splits};
    const Nest<std::optional<TensorLike>> nest = {{"watched", std::optional<TensorLike>()},
                                                  {"favorited", std::optional<TensorLike>()},
                                                  {"friends", std::optional<TensorLike>(weights)}};
    EXPECT_THAT(error_of_call(features, {.weights = nest}),
                HasSubstr("feature 'friends': the weight at position 5 is "));
  }
}

TEST(TPUEmbeddingTest, RejectsFeaturesOfDifferentNumbersOfRows) {
  Tensors features = Standard::ragged_batch(0, 4);
  const Tensors other = Standard::ragged_batch(0, 3);
  const Tensors uneven = {{"watched", features["watched"]},
                          {"favorited", features["favorited"]},
                          {"friends", other["friends"]}};
  EXPECT_THAT(error_of_call(uneven), HasSubstr("feature 'friends' has 3 rows, feature"));
}

TEST(TPUEmbeddingTest, ATooLargeTableIsAnErrorWithNameShapeAndBytes) {
  constexpr int64_t kUsers = int64_t{1} << 50;
  const auto error_under = [](distribute::Strategy& strategy) -> std::string {
    const auto scope = strategy.scope();
    const Table users = make_table({.vocabulary_size = kUsers, .dim = 4, .name = "users"});
    const TPUEmbedding layer({.feature_config = Nest<FeatureConfig>(FeatureConfig{.table = users}),
                              .optimizer = optimizers::Adagrad({})});
    return message_of<RuntimeError>([&] { strategy.run([&] { layer(Tensors(ids({1}))); }); });
  };
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  // Rows have four floats and, on cores, four of Adagrad's accumulators: 2^54 and 2^55 bytes.
  EXPECT_THAT(error_under(cpu), HasSubstr("users"));
  EXPECT_THAT(error_under(cpu),
              HasSubstr("(1125899906842624, 4) requires 18014398509481984 bytes"));
  EXPECT_THAT(error_under(tpu), HasSubstr("table 'users' with 1 slots: shape (1125899906842624, 4) "
                                          "requires 36028797018963968 bytes"));
}

TEST(TPUEmbeddingTest, MeetsTheContractOfLayers) {
  expect_layer_contract(
      {.class_name = "TPUEmbedding",
       .config = R"({"name": "tables", "tables": [{"name": "t", "vocabulary_size": 9, "dim": 4}],
    "feature_config": {"feature": {"table": 0}}})",
       .inputs = int_spec({2}),
       .output = float_spec({2, 4}),
       .trainable_weights = 1,
       .weights = 1});
}

}  // namespace keel::embedding_tpu_embedding_test
