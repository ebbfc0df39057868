#include <keel/layers/embedding/tpu_embedding.h>

#include <cmath>
#include <numeric>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/functional/input_layer.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/schedules/schedules.h>
#include <keel/optimizers/sgd.h>

namespace keel::embedding_tpu_embedding_test {

using distribute::TPUStrategy;
using layers::TPUEmbedding;
using Values = std::vector<float>;

Tensor counting(int64_t rows, int64_t dim) {
  Values values(rows * dim);
  std::iota(values.begin(), values.end(), 0.0F);
  return Tensor::from(values, {rows, dim});
}

Tensor ids(std::vector<int64_t> values) {
  const auto n = static_cast<int64_t>(values.size());
  return Tensor::from(values, {n});
}

Values of(const Tensors& t) { return t.tensor().to_vector<float>(); }

// The tables of TensorFlow's own tests: video 8 x 4, sum; user 16 x 2, mean.
struct Fixture {
  Table video = make_table({.vocabulary_size = 8, .dim = 4, .combiner = "sum", .name = "video"});
  Table user = make_table({.vocabulary_size = 16, .dim = 2, .name = "user"});
  Nest<FeatureConfig> config = {{"watched", FeatureConfig{.table = video}},
                                {"favorited", FeatureConfig{.table = video}},
                                {"friends", FeatureConfig{.table = user}}};

  static Tensors ragged(int64_t begin, int64_t end) {
    using Rows = std::vector<std::vector<int64_t>>;
    const auto cut = [&](const Rows& rows) {
      return RaggedTensor::from_rows(Rows(rows.begin() + begin, rows.begin() + end));
    };
    return {{"watched", cut({{0}, {0, 1}, {0, 1}, {1}})},
            {"favorited", cut({{0, 1}, {1}, {0}, {0, 1}})},
            {"friends", cut({{3}, {0, 1, 2}, {3}, {0, 1, 2}})}};
  }
  static Tensors sparse() {
    const auto make = [](std::vector<std::vector<int64_t>> rows, int64_t width) -> TensorLike {
      std::vector<int64_t> indices, values;
      for (size_t r = 0; r < rows.size(); ++r) {
        for (size_t c = 0; c < rows[r].size(); ++c) {
          indices.push_back(static_cast<int64_t>(r));
          indices.push_back(static_cast<int64_t>(c));
          values.push_back(rows[r][c]);
        }
      }
      const auto n = static_cast<int64_t>(values.size());
      return SparseTensor{.indices = Tensor::from(indices, {n, 2}),
                          .values = Tensor::from(values, {n}),
                          .dense_shape = {static_cast<int64_t>(rows.size()), width}};
    };
    return {{"watched", make({{0}, {0, 1}, {0, 1}, {1}}, 2)},
            {"favorited", make({{0, 1}, {1}, {0}, {0, 1}}, 2)},
            {"friends", make({{3}, {0, 1, 2}, {3}, {0, 1, 2}}, 3)}};
  }
  TPUEmbedding layer(const EmbeddingOptimizer& optimizer = "sgd") const {
    TPUEmbedding out({.feature_config = config, .optimizer = optimizer});
    return out;
  }
  void load(const TPUEmbedding& layer) const {
    layer->update_embedding_table(video, counting(8, 4));
    layer->update_embedding_table(user, counting(16, 2));
  }
};

const Values kWatched = {0, 1, 2, 3, 4, 6, 8, 10, 4, 6, 8, 10, 4, 5, 6, 7};
const Values kFriends = {6, 7, 2, 3, 6, 7, 2, 3};

void build(const TPUEmbedding& layer, const Tensors& like) { layer->build(specs_of(like)); }

TEST(TPUEmbeddingTest, SparseAndRaggedRowsArePooledAlikeOnTheHost) {
  const Fixture f;
  const TPUEmbedding layer = f.layer();
  build(layer, Fixture::sparse());
  f.load(layer);
  for (const Tensors& features : {Fixture::ragged(0, 4), Fixture::sparse()}) {
    const Tensors out = layer(features);
    EXPECT_EQ(of(out["watched"]), kWatched);
    EXPECT_EQ(of(out["friends"]), kFriends);
  }
}

TEST(TPUEmbeddingTest, ReplicasLookUpTheirOwnRows) {
  const Fixture f;
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding layer = f.layer();
  build(layer, Fixture::ragged(0, 2));
  f.load(layer);
  const auto out = strategy.run([&] {
    const int r = current_replica_context()->replica;
    return layer(Fixture::ragged(2 * r, 2 * r + 2))["watched"].tensor();
  });
  EXPECT_EQ(out[0].to_vector<float>(), Values(kWatched.begin(), kWatched.begin() + 8));
  EXPECT_EQ(out[1].to_vector<float>(), Values(kWatched.begin() + 8, kWatched.end()));
}

TEST(TPUEmbeddingTest, TheLossOfTheFixtureIsThatOfUpstream) {
  const Fixture f;
  const TPUEmbedding layer = f.layer();
  build(layer, Fixture::ragged(0, 2));
  f.load(layer);
  float loss = 0;
  for (const TensorLike& t : flatten(layer(Fixture::ragged(0, 2)))) {
    loss += ops::sum(ops::square(t.tensor())).item<float>() / 2;
  }
  EXPECT_EQ(loss, 335);
}

TEST(TPUEmbeddingTest, OneVirtualVariableStandsForTheTablesOfAnEngine) {
  const Fixture f;
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding layer = f.layer();
  build(layer, Fixture::ragged(0, 2));
  const std::vector<Variable> variables = layer->trainable_variables();
  ASSERT_EQ(variables.size(), 1U);
  EXPECT_EQ(variables[0].name(), "tpu_embedding_helper_dummy");
  EXPECT_TRUE(variables[0].is_virtual());
  EXPECT_EQ(variables[0].read().to_vector<float>(), Values{0});
}

TEST(TPUEmbeddingTest, OnTheHostTheTablesAreTrainableInOrderOfFirstUse) {
  const Fixture f;
  const TPUEmbedding layer = f.layer();
  build(layer, Fixture::ragged(0, 2));
  const std::vector<Variable> variables = layer->trainable_variables();
  ASSERT_EQ(variables.size(), 2U);
  // Dict entries are visited by sorted key: favorited (video) first, then friends (user).
  EXPECT_EQ(variables[0].shape(), Shape({8, 4}));
  EXPECT_EQ(variables[1].shape(), Shape({16, 2}));
}

// One table of zeros. The tests look up id 1 with a sum as the loss: the gradient of the row is 1.
struct OneRow {
  Table table = make_table({.vocabulary_size = 4, .dim = 2, .initializer = "zeros"});
  TPUEmbedding layer;
  explicit OneRow(const EmbeddingOptimizer& optimizer)
      : layer({.feature_config = FeatureConfig{.table = table}, .optimizer = optimizer}) {
    layer->build(Specs(TensorSpec{.shape = {1}, .dtype = DType::kInt64}));
  }
  Values values() const { return layer->embedding_tables()[0].second.to_vector<float>(); }
};

TEST(TPUEmbeddingTest, TakingTheGradientOfTheVirtualVariableUpdatesTheTables) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const OneRow one{tpu::SGD{.learning_rate = 0.5}};
  strategy.run([&] {
    GradientTape tape;
    const Tensor loss = ops::sum(one.layer(ids({1})));
    const auto gradients = tape.gradient(loss, one.layer->trainable_variables());
    EXPECT_EQ(gradients[0].dense().to_vector<float>(), Values{0});
  });
  EXPECT_EQ(one.values(), (Values{0, 0, -0.5, -0.5, 0, 0, 0, 0}));
}

TEST(TPUEmbeddingTest, GradientsOfOtherVariablesLeaveTheTablesAlone) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const OneRow one{tpu::SGD{.learning_rate = 0.5}};
  const Variable other(Tensor::scalar<float>(2), {.name = "other"});
  strategy.run([&] {
    GradientTape tape;
    const Tensor loss = ops::sum(one.layer(ids({1}))) + other;
    EXPECT_EQ(tape.gradient(loss, {other})[0].dense().item<float>(), 1);
  });
  EXPECT_EQ(one.values(), Values(8, 0.0F));
}

TEST(TPUEmbeddingTest, ASecondGradientOfOneLookupIsAnError) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const OneRow one{"sgd"};
  EXPECT_THROW(strategy.run([&] {
    GradientTape tape({.persistent = true});
    const Tensor loss = ops::sum(one.layer(ids({1})));
    tape.gradient(loss, one.layer->trainable_variables());
    tape.gradient(loss, one.layer->trainable_variables());
  }),
               RuntimeError);
  EXPECT_EQ(one.values()[2], -0.02F) << "the first one counts, summed over the replicas";
}

TEST(TPUEmbeddingTest, SeveralCallsOfOneStepAreUpdatesOfTheirOwnTheLastCallFirst) {
  for (const bool pipelined : {false, true}) {
    TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    const Table table = make_table({.vocabulary_size = 4, .dim = 1, .initializer = "zeros"});
    const TPUEmbedding layer({.feature_config = FeatureConfig{.table = table},
                              .optimizer = tpu::Adagrad{.learning_rate = 1},
                              .pipeline_execution_with_tensor_core = pipelined});
    strategy.run([&] {
      GradientTape tape;
      const Tensor first = layer(ids({2}));
      const Tensor second = layer(ids({2}));
      EXPECT_EQ(of(second), Values{0});
      tape.gradient(ops::sum(first) + ops::sum(second) * 3, layer->trainable_variables());
    });
    const Values rows = layer->embedding_tables()[0].second.to_vector<float>();
    EXPECT_NEAR(rows[2], -3 / std::sqrt(9.1) - 1 / std::sqrt(10.1), 1e-6);
  }
}

TEST(TPUEmbeddingTest, EvaluationChangesNothing) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const OneRow one{"adagrad"};
  strategy.run([&] { one.layer(ids({1, 2, 3})); });
  EXPECT_EQ(one.values(), Values(8, 0.0F));
}

TEST(TPUEmbeddingTest, TheOptimizerCountsStepsForTheVirtualVariableAndLeavesItZero) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const OneRow one{"sgd"};
  const optimizers::Adam adam({});
  for (int step = 0; step < 3; ++step) {
    strategy.run([&] {
      GradientTape tape;
      const Tensor loss = ops::sum(one.layer(ids({1})));
      const auto variables = one.layer->trainable_variables();
      adam->apply_gradients(tape.gradient(loss, variables), variables);
    });
  }
  EXPECT_EQ(adam->iterations(), 3);
  EXPECT_EQ(one.layer->trainable_variables()[0].read().to_vector<float>(), Values{0});
}

TEST(TPUEmbeddingTest, AScheduleFollowsTheIterationsOfItsOptimizer) {
  for (const bool apply : {true, false}) {
    TPUStrategy strategy({.num_cores = 1});
    const auto scope = strategy.scope();
    const optimizers::SGD sgd(
        {.learning_rate = optimizers::schedules::InverseTimeDecay(
             {.initial_learning_rate = 1, .decay_steps = 1, .decay_rate = 1})});
    const OneRow one{sgd};
    for (int step = 0; step < 3; ++step) {
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = ops::sum(one.layer(ids({1})));
        const auto variables = one.layer->trainable_variables();
        const auto gradients = tape.gradient(loss, variables);
        if (apply) sgd->apply_gradients(gradients, variables);
      });
    }
    // Rates of 1, 1/2 and 1/3 if the iterations advance, else three steps at the first rate.
    EXPECT_NEAR(one.values()[2], apply ? -1.8333333 : -3.0, 1e-6);
  }
}

TEST(TPUEmbeddingTest, ACallableRateRunsOnceForEachStep) {
  TPUStrategy strategy({.num_cores = 3});
  const auto scope = strategy.scope();
  int calls = 0;
  const OneRow one{
      tpu::SGD{.learning_rate = std::function<double()>([&] { return 1.0 / ++calls; })}};
  for (int step = 0; step < 2; ++step) {
    strategy.run([&] {
      GradientTape tape;
      tape.gradient(ops::sum(one.layer(ids({1}))), one.layer->trainable_variables());
    });
  }
  EXPECT_EQ(calls, 2);
  EXPECT_FLOAT_EQ(one.values()[2], -3 * (1 + 0.5F));
}

TEST(TPUEmbeddingTest, FourReplicasTrainAsTheHostDoesWithATranslatedOptimizer) {
  for (const bool adagrad : {false, true}) {
    const auto train = [&](distribute::Strategy& strategy) {
      set_random_seed(5);
      const auto scope = strategy.scope();
      const OptimizerHandle optimizer =
          adagrad ? OptimizerHandle(optimizers::Adagrad({.learning_rate = 0.1}))
                  : OptimizerHandle(optimizers::SGD({.learning_rate = 0.1}));
      const Table table = make_table({.vocabulary_size = 20, .dim = 3, .combiner = "sqrtn"});
      const TPUEmbedding layer(
          {.feature_config = FeatureConfig{.table = table}, .optimizer = optimizer});
      layer->build(Specs(
          TensorSpec{.shape = {2, kUnknown}, .dtype = DType::kInt64, .layout = Layout::kRagged}));
      const int replicas = strategy.num_replicas_in_sync();
      for (int64_t step = 0; step < 20; ++step) {
        strategy.run([&] {
          std::vector<std::vector<int64_t>> rows;
          for (int64_t row = 0; row < 8 / replicas; ++row) {
            const int64_t global = current_replica_context()->replica * (8 / replicas) + row;
            rows.push_back({(global * 7 + step) % 20, (global + step * 3) % 20, 4});
          }
          GradientTape tape;
          const Tensor y = layer(Tensors(RaggedTensor::from_rows(rows))).tensor();
          const Tensor loss = ops::sum(ops::square(y - 1)) / 8.0;
          const auto variables = layer->trainable_variables();
          optimizer->apply_gradients(tape.gradient(loss, variables), variables);
        });
      }
      return layer->embedding_tables()[0].second.to_vector<float>();
    };
    distribute::CPUStrategy cpu;
    TPUStrategy tpu({.num_cores = 4});
    const Values expected = train(cpu);
    const Values received = train(tpu);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(received[i], expected[i], 1e-4 * std::abs(expected[i]) + 1e-7) << i;
    }
  }
}

TEST(TPUEmbeddingTest, BothLivesOfATableBeginAlike) {
  const auto first_values = [](distribute::Strategy& strategy) {
    set_random_seed(9);
    const auto scope = strategy.scope();
    const Fixture f;
    const TPUEmbedding layer = f.layer();
    build(layer, Fixture::ragged(0, 2));
    return layer->embedding_tables()[1].second.to_vector<float>();
  };
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 3});
  EXPECT_EQ(first_values(cpu), first_values(tpu));
}

TEST(TPUEmbeddingTest, SequencesAreCutAndPadded) {
  const Table user = make_table({.vocabulary_size = 16, .dim = 2});
  const Nest<FeatureConfig> config = FeatureConfig{.table = user, .max_sequence_length = 2};
  const Tensors rows = RaggedTensor::from_rows<int64_t>({{3}, {0, 1, 2}});
  const Values expected = {6, 7, 0, 0, 0, 1, 2, 3};
  const TPUEmbedding host({.feature_config = config});
  build(host, rows);
  host->update_embedding_table(user, counting(16, 2));
  EXPECT_EQ(of(host(rows)), expected);
  EXPECT_EQ(host(rows).tensor().shape(), Shape({2, 2, 2}));

  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding engine({.feature_config = config, .optimizer = "sgd"});
  build(engine, rows);
  engine->update_embedding_table(user, counting(16, 2));
  EXPECT_EQ(strategy.run([&] { return of(engine(rows)); })[1], expected);
}

TEST(TPUEmbeddingTest, WeightsScaleIdsAndAnEmptyEntryMeansOnes) {
  const Fixture f;
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const TPUEmbedding layer = f.layer();
  const Tensors features = Fixture::ragged(0, 4);
  build(layer, features);
  f.load(layer);
  const RaggedTensor& watched = features["watched"].leaf().ragged();
  const RaggedTensor halves{Tensor::full<float>({watched.values.size()}, 0.5F), watched.row_splits};
  const Nest<std::optional<TensorLike>> weights = {{"watched", std::optional<TensorLike>(halves)},
                                                   {"favorited", std::optional<TensorLike>()},
                                                   {"friends", std::optional<TensorLike>()}};
  const auto out = strategy.run([&] { return layer(features, {.weights = weights}); });
  Values expected = kWatched;
  for (float& x : expected) x /= 2;
  EXPECT_EQ(of(out[0]["watched"]), expected);
  EXPECT_EQ(of(out[0]["friends"]), kFriends);
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
  const Fixture f;
  const TPUEmbedding layer({.feature_config = FeatureConfig{.table = f.user}});
  layer->build(Specs(TensorSpec{.shape = {2, 1}, .dtype = DType::kInt64}));
  layer->update_embedding_table(f.user, counting(16, 2));
  const Tensor out = layer(ids({3, 1}).reshaped({2, 1}));
  EXPECT_EQ(out.shape(), Shape({2, 1, 2}));
  EXPECT_EQ(out.to_vector<float>(), (Values{6, 7, 2, 3}));
}

TEST(TPUEmbeddingTest, ServingConfigLooksUpOnTheHostUnderAnyStrategy) {
  const Fixture f;
  TPUStrategy strategy({.num_cores = 2});
  std::optional<TPUEmbedding> layer;
  {
    const auto scope = strategy.scope();
    layer = f.layer();
    build(*layer, Fixture::ragged(0, 2));
    f.load(*layer);
  }
  const Nest<FeatureConfig> serving = FeatureConfig{.table = f.user, .max_sequence_length = 2};
  const Tensors rows = RaggedTensor::from_rows<int64_t>({{3}, {0, 1, 2}});
  EXPECT_EQ(of((*layer)(rows, {.serving_config = serving})), (Values{6, 7, 0, 0, 0, 1, 2, 3}));
  const Nest<FeatureConfig> foreign =
      FeatureConfig{.table = make_table({.vocabulary_size = 16, .dim = 2})};
  EXPECT_THROW((*layer)(rows, {.serving_config = foreign}), ValueError);
}

TEST(TPUEmbeddingTest, CallsUnderTheOtherKindOfStrategyAreErrors) {
  const Fixture f;
  const TPUEmbedding host = f.layer();
  build(host, Fixture::ragged(0, 2));
  TPUStrategy strategy({.num_cores = 2});
  EXPECT_THROW(strategy.run([&] { host(Fixture::ragged(0, 2)); }), RuntimeError);
  std::optional<TPUEmbedding> engine;
  {
    const auto scope = strategy.scope();
    engine = f.layer();
    build(*engine, Fixture::ragged(0, 2));
  }
  EXPECT_THROW((*engine)(Fixture::ragged(0, 2)), RuntimeError);
}

TEST(TPUEmbeddingTest, OddIdsAreErrorsThatNameTheFeatureAndTheId) {
  const Fixture f;
  const auto expect_named = [](const auto& call, const char* id) {
    try {
      call();
      ADD_FAILURE() << "no error for " << id;
    } catch (const ValueError& error) {
      const std::string text = error.what();
      EXPECT_NE(text.find("watched"), std::string::npos) << text;
      EXPECT_NE(text.find(id), std::string::npos) << text;
    }
  };
  const auto with_id = [](int64_t id) {
    Tensors::Dict features = Fixture::ragged(0, 2).entries();
    features["watched"] = RaggedTensor::from_rows<int64_t>({{0}, {id}});
    return Tensors(features);
  };
  const TPUEmbedding host = f.layer();
  build(host, Fixture::ragged(0, 2));
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const TPUEmbedding engine = f.layer();
  build(engine, Fixture::ragged(0, 2));
  for (int64_t id : {8, -1, 1000}) {
    const std::string text = std::to_string(id);
    expect_named([&] { strategy.run([&] { engine(with_id(id)); }); }, text.c_str());
    distribute::CPUStrategy cpu;
    const auto on_host = cpu.scope();
    expect_named([&] { host(with_id(id)); }, text.c_str());
  }
}

TEST(TPUEmbeddingTest, WrongStructuresWeightsAndRanksAreErrors) {
  const Fixture f;
  const TPUEmbedding layer = f.layer();
  const Tensors good = Fixture::ragged(0, 2);
  build(layer, good);
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
  EXPECT_THROW(make_table({.vocabulary_size = 4, .dim = 4, .combiner = "max"}), ValueError);
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

TEST(TPUEmbeddingTest, UserObjectsAreNotWrittenTo) {
  const Table table = make_table({.vocabulary_size = 4, .dim = 2});
  const TPUEmbedding a({.feature_config = FeatureConfig{.table = table}, .optimizer = "sgd"});
  EXPECT_TRUE(table->name.empty());
  EXPECT_FALSE(table->optimizer);
}

TEST(TPUEmbeddingTest, SeparateOptimizersGiveTheSameResultInBothModes) {
  const auto train = [](distribute::Strategy& strategy) {
    set_random_seed(3);
    const auto scope = strategy.scope();
    const optimizers::SGD of_tables({.learning_rate = 1.0});
    const optimizers::SGD of_dense({.learning_rate = 0.1});
    const Table table = make_table({.vocabulary_size = 4, .dim = 2});
    const TPUEmbedding layer(
        {.feature_config = FeatureConfig{.table = table}, .optimizer = of_tables});
    layer->build(Specs(TensorSpec{.shape = {2}, .dtype = DType::kInt64}));
    const Variable kernel(Tensor::from<float>({0.5, -0.25}, {2, 1}), {.name = "kernel"});
    for (int step = 0; step < 3; ++step) {
      strategy.run([&] {
        GradientTape tape;
        const Tensor loss = ops::sum(ops::square(ops::matmul(layer(ids({1, 3})), kernel) - 1));
        std::vector<Variable> variables = layer->trainable_variables();
        variables.push_back(kernel);
        const auto gradients = tape.gradient(loss, variables);
        of_tables->apply_gradients({gradients[0]}, {variables[0]});
        of_dense->apply_gradients({gradients[1]}, {kernel});
      });
    }
    Values out = layer->embedding_tables()[0].second.to_vector<float>();
    for (float x : kernel.read().to_vector<float>()) out.push_back(x);
    return out;
  };
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  EXPECT_EQ(train(cpu), train(tpu));
}

TEST(TPUEmbeddingTest, ServingConfigNeedsABuiltLayerAndValues) {
  const Fixture f;
  const TPUEmbedding layer = f.layer();
  const Nest<FeatureConfig> serving = FeatureConfig{.table = f.user};
  const Tensors rows = RaggedTensor::from_rows<int64_t>({{3}});
  EXPECT_THROW(layer(rows, {.serving_config = serving}), RuntimeError);
  build(layer, Fixture::ragged(0, 2));
  const Tensors symbolic = layers::ragged_input({.dtype = DType::kInt64});
  EXPECT_THROW(layer(symbolic, {.serving_config = serving}), RuntimeError);
}

TEST(TPUEmbeddingTest, LaterChangesToAUsersTableHaveNoEffect) {
  const Table table = make_table({.vocabulary_size = 16, .dim = 2, .combiner = "sum"});
  const TPUEmbedding layer({.feature_config = FeatureConfig{.table = table}});
  const Tensors rows = RaggedTensor::from_rows<int64_t>({{1, 2}});
  build(layer, rows);
  layer->update_embedding_table(table, counting(16, 2));
  table->combiner = "mean";
  EXPECT_EQ(of(layer(rows)), (Values{6, 8}));
}

TEST(TPUEmbeddingTest, TablesThatShareAnOptimizerShareItAfterReadingTheirConfig) {
  const Fixture f;
  const optimizers::Adagrad adagrad({.learning_rate = 0.25});
  const TPUEmbedding layer = f.layer(adagrad);
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
  const Fixture f;
  const TPUEmbedding layer({.feature_config = f.config});
  layer(Fixture::ragged(0, 4));
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
    const Fixture f;
    const TPUEmbedding layer({.feature_config = f.config, .optimizer = optimizers::SGD({})});
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

TEST(TPUEmbeddingTest, RefusesWeightsThatAreNaNOrInfiniteByNameAndPosition) {
  const Tensors features = Fixture::ragged(0, 4);
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    const RaggedTensor& splits = features["friends"].leaf().ragged();
    const RaggedTensor weights = {Tensor::from<float>({1, 1, 1, 1, 1, bad, 1, 1}, {8}),
                                  splits.row_splits};
    const Nest<std::optional<TensorLike>> nest = {{"watched", std::optional<TensorLike>()},
                                                  {"favorited", std::optional<TensorLike>()},
                                                  {"friends", std::optional<TensorLike>(weights)}};
    EXPECT_NE(error_of_call(features, {.weights = nest})
                  .find("feature 'friends': the weight at position 5 is "),
              std::string::npos);
  }
}

TEST(TPUEmbeddingTest, RefusesFeaturesOfDifferentNumbersOfRows) {
  Tensors features = Fixture::ragged(0, 4);
  const Tensors other = Fixture::ragged(0, 3);
  const Tensors uneven = {{"watched", features["watched"]},
                          {"favorited", features["favorited"]},
                          {"friends", other["friends"]}};
  EXPECT_NE(error_of_call(uneven).find("feature 'friends' has 3 rows, feature"), std::string::npos);
}

TEST(TPUEmbeddingTest, ATableThatIsTooLargeSaysItsNameItsShapeAndItsBytes) {
  constexpr int64_t kUsers = int64_t{1} << 50;
  const auto error_under = [](distribute::Strategy& strategy) -> std::string {
    const auto scope = strategy.scope();
    const Table users = make_table({.vocabulary_size = kUsers, .dim = 4, .name = "users"});
    const TPUEmbedding layer({.feature_config = Nest<FeatureConfig>(FeatureConfig{.table = users}),
                              .optimizer = optimizers::Adagrad({})});
    try {
      strategy.run([&] { layer(Tensors(ids({1}))); });
    } catch (const RuntimeError& error) {
      return error.what();
    }
    return "";
  };
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  // Rows have four floats and, on cores, four of Adagrad's accumulators: 2^54 and 2^55 bytes.
  EXPECT_NE(error_under(cpu).find("users"), std::string::npos) << error_under(cpu);
  EXPECT_NE(error_under(cpu).find("(1125899906842624, 4) needs 18014398509481984 bytes"),
            std::string::npos)
      << error_under(cpu);
  EXPECT_NE(error_under(tpu).find("table 'users' with 1 slots: shape (1125899906842624, 4) "
                                  "needs 36028797018963968 bytes"),
            std::string::npos)
      << error_under(tpu);
}

}  // namespace keel::embedding_tpu_embedding_test
