#include <keel/layers/embedding/v1/tpu_embedding_v1.h>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/embedding/v1/embedding_features.h>
#include <keel/layers/embedding/v1/internal/enqueue_data.h>
#include <keel/layers/embedding/v1/internal/lookup_statistics.h>
#include <keel/optimizers/embedding/tpu_parameters.h>

#include "tests/distribute/fake_processes.h"
#include "tests/support/temporary_folder.h"

namespace keel::tpu::v1::tpu_embedding_v1_test {

namespace fc = feature_column;
using distribute::TPUStrategy;
using testing_support::TemporaryFolder;
using Values = std::vector<float>;
using Rows = std::vector<std::vector<int64_t>>;

const StochasticGradientDescentParameters kSgd = {.learning_rate = 1.0};

TableConfig table(int64_t rows, int64_t dim, TableOptions options = {}) {
  options.vocabulary_size = rows;
  options.dimension = dim;
  if (!options.initializer) options.initializer = initializers::ones();
  return options;
}
FeatureConfig feature(const std::string& table, int64_t length = 0) {
  return FeatureOptions{.table_id = table, .max_sequence_length = length};
}

// Options with one table "t" of 5 rows and the feature "x".
TPUEmbeddingOptions one_table(int64_t batch_size, int64_t dim = 1) {
  return {.table_to_config_dict = {{"t", table(5, dim)}},
          .feature_to_config_dict = {{"x", feature("t")}},
          .batch_size = batch_size,
          .optimization_parameters = kSgd};
}

RaggedEnqueueData ragged(const Rows& rows) {
  return RaggedEnqueueData::from_ragged_tensor(RaggedTensor::from_rows(rows));
}

Values read(const TPUEmbedding& embedding, const std::string& table) {
  std::map<std::string, std::string> names;
  for (const std::string& name : embedding.tables()) names[name] = name;
  for (const StateEntry& entry : embedding.state_entries(names)) {
    if (entry.name == table) return entry.get().to_vector<float>();
  }
  throw ValueError("no table ", table);
}

// Runs one training step in which every activation has gradient 1.
void step(TPUStrategy& strategy, TPUEmbedding& embedding, std::optional<int64_t> number = {}) {
  strategy.run([&] {
    TPUEmbedding::Activations gradients = embedding.get_activations();
    for (auto& [key, value] : gradients) value = Tensor::full<float>(value.shape(), 1);
    embedding.generate_send_gradients(gradients, number);
  });
}

TEST(SpecRowsH, H08_RateFunctionsOfTheGlobalStepScaleTheirTables) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const auto column = [](const std::string& key) {
    return fc::categorical_column_with_identity(key, 3);
  };
  std::vector<Column> columns = {
      tpu::embedding_column(column("a"), 2, {.initializer = initializers::ones()}),
      tpu::embedding_column(
          column("b"), 2,
          {.initializer = initializers::ones(),
           .learning_rate_fn = [](int64_t now) { return now == 0 ? 2.0 : 0.0; }})};
  for (const auto& c : shared_embedding_columns({column("c"), column("d")}, 2,
                                                {.initializer = initializers::ones()})) {
    columns.push_back(c);
  }
  for (const auto& c : shared_embedding_columns(
           {column("e"), column("f")}, 2,
           {.initializer = initializers::ones(),
            .learning_rate_fn = [](int64_t now) { return now == 0 ? 3.0 : 0.0; }})) {
    columns.push_back(c);
  }
  const Configs configs = get_configs_from_feature_columns(columns);
  TPUEmbedding embedding({.table_to_config_dict = configs.table_to_config_dict,
                          .feature_to_config_dict = configs.feature_to_config_dict,
                          .batch_size = 2,
                          .optimization_parameters = kSgd});
  EXPECT_EQ(embedding.learning_rate_fns().size(), 2U);
  embedding.build();
  CoreEnqueueData data;
  for (const char* key : {"a", "b", "c", "d", "e", "f"}) data[key] = ragged({{1}});
  const auto change = [&](const std::string& name) { return read(embedding, name)[2] - 1; };

  embedding.generate_enqueue({data, data});
  step(strategy, embedding, 0);
  EXPECT_FLOAT_EQ(change("tbl_a"), -2);
  EXPECT_FLOAT_EQ(change("tbl_b"), 2 * change("tbl_a"));
  EXPECT_FLOAT_EQ(change("tbl_e_f_shared_embedding"), 3 * change("tbl_c_d_shared_embedding"));

  embedding.generate_enqueue({data, data});
  step(strategy, embedding, 1);
  EXPECT_FLOAT_EQ(change("tbl_a"), -4);
  EXPECT_FLOAT_EQ(change("tbl_b"), -4);
  EXPECT_FLOAT_EQ(change("tbl_e_f_shared_embedding"), -12);
}

TEST(SpecRowsH, H10_AWeightedColumnIsAMeanByItsWeights) {
  const auto x = fc::weighted_categorical_column(fc::categorical_column_with_identity("x", 4), "w");
  const Configs configs = get_configs_from_feature_columns({tpu::embedding_column(x, 1)});
  const Tensors::Dict batch = {{"x", RaggedTensor::from_rows<int64_t>({{2, 1}, {1, 3}})},
                               {"w", RaggedTensor::from_rows<float>({{0.5, 1}, {0.2, 0}})}};
  const Tensor counting = Tensor::from<float>({0, 1, 2, 3}, {4, 1});
  const auto expect_means = [](const Tensor& found) {
    const Values values = found.to_vector<float>();
    EXPECT_NEAR(values[0], 1.3333333, 1e-6);
    EXPECT_NEAR(values[1], 1, 1e-6);
  };
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbedding embedding({.table_to_config_dict = configs.table_to_config_dict,
                          .feature_to_config_dict = configs.feature_to_config_dict,
                          .batch_size = 2,
                          .optimization_parameters = kSgd});
  embedding.build();
  const std::string name = embedding.tables().at(0);
  embedding.state_entries({{name, name}})[0].set(counting);
  embedding.generate_enqueue({enqueue_data_of(split_inputs(batch, configs).embedding_inputs)});
  expect_means(strategy.run([&] { return embedding.get_activations().at("x"); })[0]);

  const layers::EmbeddingFeatures on_host({.configs = configs});
  on_host->tables().at(name).assign(counting);
  expect_means(on_host(Tensors(batch))["x"].tensor());
}

TEST(SpecRowsH, H14_BatchModeAndNamesAreChecked) {
  TPUStrategy strategy({.num_cores = 4});
  const auto scope = strategy.scope();
  EXPECT_THROW(TPUEmbedding(one_table(10)), ValueError);
  EXPECT_NO_THROW(TPUEmbedding(one_table(8)));
  TPUEmbeddingOptions inference = one_table(8);
  inference.mode = Mode::kInference;
  EXPECT_THROW(TPUEmbedding{inference}, ValueError);
  TPUEmbeddingOptions without = one_table(8);
  without.optimization_parameters = {};
  EXPECT_THROW(TPUEmbedding{without}, ValueError);
  without.table_to_config_dict = {{"t", table(5, 1, {.optimization_parameters = kSgd})}};
  EXPECT_NO_THROW(TPUEmbedding{without});
  TPUEmbeddingOptions unused = one_table(8);
  unused.table_to_config_dict.emplace("u", table(5, 1));
  EXPECT_THROW(TPUEmbedding{unused}, ValueError);
  TPUEmbeddingOptions unknown = one_table(8);
  unknown.feature_to_config_dict.emplace("y", feature("none"));
  EXPECT_THROW(TPUEmbedding{unknown}, ValueError);
}

TEST(SpecRowsH, H15_ActivationsOfATableAreOrderedByFeatureName) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbedding embedding(
      {.table_to_config_dict = {{"t", table(8, 4)}},
       .feature_to_config_dict = {{"z", feature("t")}, {"x", feature("t")}, {"y", feature("t", 3)}},
       .batch_size = 4,
       .optimization_parameters = kSgd});
  EXPECT_EQ(embedding.num_features("t"), 5);
  const auto& places = embedding.features_of("t");
  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0].feature, "x");
  EXPECT_EQ(places[1].feature, "y");
  EXPECT_EQ(places[1].begin, 1);
  EXPECT_EQ(places[1].count, 3);
  EXPECT_EQ(places[2].begin, 4);
  embedding.build();
  const CoreEnqueueData data = {
      {"x", ragged({{1}, {}})}, {"y", ragged({{1, 1, 1, 1}, {1}})}, {"z", ragged({{1}, {}})}};
  embedding.generate_enqueue({data, data});
  const auto blocks = strategy.run([&] { return embedding.get_activation_blocks().at("t"); });
  EXPECT_EQ(blocks[0].shape(), Shape({2, 5, 4}));
  EXPECT_EQ(ops::slice(blocks[0], 2, 0, 1).to_vector<float>(),
            Values({1, 1, 1, 1, 1, 0, 1, 0, 0, 0}));
}

TEST(SpecRowsH, H16_RateFunctionsNeedAStepAndInferenceSendsNoGradients) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(1);
  options.table_to_config_dict = {
      {"t", table(5, 1, {.learning_rate_fn = [](int64_t) { return 1.0; }})}};
  TPUEmbedding training(options);
  training.build();
  training.generate_enqueue({{{"x", ragged({{1}})}}});
  const TPUEmbedding::Activations ones = {{"x", Tensor::full<float>({1, 1}, 1)}};
  strategy.run([&] {
    training.get_activations();
    EXPECT_THROW(training.generate_send_gradients(ones), ValueError);
    EXPECT_NO_THROW(training.generate_send_gradients(ones, 0));
  });

  TPUStrategy other({.num_cores = 1});
  const auto other_scope = other.scope();
  TPUEmbeddingOptions serving = one_table(1);
  serving.optimization_parameters = {};
  serving.mode = Mode::kInference;
  TPUEmbedding inference(serving);
  inference.build();
  inference.generate_enqueue({{{"x", ragged({{1}})}}});
  other.run([&] {
    inference.get_activations();
    EXPECT_THROW(inference.generate_send_gradients(ones, 0), RuntimeError);
  });
}

TEST(V1TPUEmbedding, NeedsATPUStrategyAndKnownOptions) {
  EXPECT_THROW(TPUEmbedding(one_table(2)), ValueError);
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions strange = one_table(2);
  strange.partition_strategy = "rows";
  EXPECT_THROW(TPUEmbedding{strange}, ValueError);
  TPUEmbeddingOptions wrong_class = one_table(2);
  wrong_class.optimization_parameters = tpu::SGD{};
  EXPECT_THROW(TPUEmbedding{wrong_class}, ValueError);
  TPUEmbeddingOptions wide = one_table(2, 2);
  wide.optimization_parameters = FrequencyEstimatorParameters{
      .tau = 0.1, .max_delta = 10.0, .outlier_threshold = 5.0, .weight_exponent = 1.0};
  EXPECT_THROW(TPUEmbedding{wide}, ValueError);
}

TEST(V1TPUEmbedding, ATableRateIsItsNumberThenItsFunctionThenItsParameters) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const LearningRateFn two = [](int64_t) { return 2.0; };
  const AdagradParameters adagrad = {.learning_rate = 1.0, .initial_accumulator = 3};
  TPUEmbedding embedding(
      {.table_to_config_dict = {{"number", table(2, 1, {.learning_rate = 5})},
                                {"zero", table(2, 1, {.learning_rate = 0})},
                                {"function", table(2, 1, {.learning_rate_fn = two})},
                                {"own", table(2, 1, {.optimization_parameters = adagrad})}},
       .feature_to_config_dict = {{"a", feature("number")},
                                  {"b", feature("zero")},
                                  {"c", feature("function")},
                                  {"d", feature("own")}},
       .batch_size = 1,
       .optimization_parameters = kSgd});
  embedding.build();
  CoreEnqueueData data;
  for (const char* key : {"a", "b", "c", "d"}) data[key] = ragged({{0}});
  embedding.generate_enqueue({data});
  step(strategy, embedding, 7);
  EXPECT_EQ(read(embedding, "number")[0], 1 - 5);
  EXPECT_EQ(read(embedding, "zero")[0], 1 - 1);
  EXPECT_EQ(read(embedding, "function")[0], 1 - 2);
  EXPECT_EQ(read(embedding, "own")[0], 1 - 1.0F / 2);
}

TEST(V1TPUEmbedding, TablesOfOneRateFunctionShareATag) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  const double rate = 2;
  const LearningRateFn f = [rate](int64_t) { return rate; };
  const LearningRateFn g = [rate](int64_t) { return rate; };
  TPUEmbedding embedding(
      {.table_to_config_dict = {{"a", table(2, 1, {.learning_rate_fn = g})},
                                {"b", table(2, 1, {.learning_rate_fn = f})},
                                {"c", table(2, 1, {.learning_rate_fn = g})}},
       .feature_to_config_dict = {{"a", feature("a")}, {"b", feature("b")}, {"c", feature("c")}},
       .batch_size = 1,
       .optimization_parameters = kSgd});
  ASSERT_EQ(embedding.learning_rate_fns().size(), 2U);
  EXPECT_EQ(embedding.learning_rate_fns()[0], g);
  EXPECT_EQ(embedding.learning_rate_fns()[1], f);
}

TEST(V1TPUEmbedding, ShardsBeyondASmallTableAreDummies) {
  TPUStrategy strategy({.num_hosts = 3, .num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(3);
  options.table_to_config_dict = {{"t", table(2, 1)}};
  const auto small = TPUEmbedding(options).variable_parts("t");
  ASSERT_EQ(small.size(), 3U);
  EXPECT_EQ(small[1].rows, 1);
  EXPECT_EQ(small[2].name, "dummy_2_t");
  EXPECT_TRUE(small[2].dummy);
  options.table_to_config_dict = {{"t", table(5, 1)}};
  const auto large = TPUEmbedding(options).variable_parts("t");
  EXPECT_EQ(large[0].rows, 2);
  EXPECT_EQ(large[2].rows, 1);
  EXPECT_FALSE(large[2].dummy);
}

TEST(V1TPUEmbedding, BothPartitionsGiveTheSameValues) {
  std::vector<Values> found;
  for (const std::string partition : {"div", "mod"}) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 2});
    const auto scope = strategy.scope();
    set_random_seed(3);
    TPUEmbeddingOptions options = one_table(4, 2);
    options.table_to_config_dict = {{"t", TableOptions{.vocabulary_size = 7, .dimension = 2}}};
    options.partition_strategy = partition;
    TPUEmbedding embedding(options);
    EXPECT_EQ(embedding.partition_strategy(), partition);
    embedding.build();
    std::vector<CoreEnqueueData> data;
    for (int64_t core = 0; core < 4; ++core) data.push_back({{"x", ragged({{core, 6, 2}})}});
    embedding.generate_enqueue(data);
    step(strategy, embedding);
    found.push_back(read(embedding, "t"));
  }
  EXPECT_EQ(found[0], found[1]);
}

// Sparse data by [sample] and by [sample, position], ragged data, and dense ids give the same
// results.
TEST(V1TPUEmbedding, AcceptsEveryFormOfEnqueueData) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(2);
  options.table_to_config_dict = {{"t", table(5, 1, {.combiner = std::nullopt})}};
  TPUEmbedding embedding(options);
  embedding.build();
  embedding.state_entries({{"t", "t"}})[0].set(Tensor::from<float>({0, 1, 2, 3, 4}, {5, 1}));
  const auto look_up = [&](const auto& data) {
    embedding.generate_enqueue({{{"x", data}}});
    return strategy.run([&] { return embedding.get_activations().at("x"); })[0]
        .template to_vector<float>();
  };
  const Tensor ids = Tensor::from<int64_t>({4, 1, 2}, {3});
  EXPECT_EQ(look_up(EnqueueData{.embedding_indices = ids,
                                .sample_indices = Tensor::from<int32_t>({0, 1, 1}, {3})}),
            Values({4, 3}));
  EXPECT_EQ(look_up(EnqueueData{.embedding_indices = ids,
                                .sample_indices = Tensor::from<int64_t>({0, 0, 1, 0, 1, 5}, {3, 2}),
                                .aggregation_weights = Tensor::from<float>({1, 1, 10}, {3})}),
            Values({4, 21}));
  EXPECT_EQ(look_up(ragged({{4}, {1, 2}})), Values({4, 3}));
  EXPECT_EQ(look_up(EnqueueData{.embedding_indices = Tensor::from<int64_t>({3, 0}, {2})}),
            Values({3, 0}));
}

TEST(V1TPUEmbedding, RejectsEnqueueDataThatDoesNotFit) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(4);
  options.feature_to_config_dict.emplace("s", feature("t", 2));
  TPUEmbedding embedding(options);
  embedding.build();
  const auto good = ragged({{1}, {2}});
  const auto refused = [&](const std::vector<CoreEnqueueData>& cores) {
    EXPECT_THROW(embedding.generate_enqueue(cores), ValueError);
  };
  const CoreEnqueueData whole = {{"x", good}, {"s", good}};
  const auto with_x = [&](const auto& x) {
    return std::vector<CoreEnqueueData>{{{"x", x}, {"s", good}}, whole};
  };
  EXPECT_NO_THROW(embedding.generate_enqueue({whole, whole}));
  refused({whole});
  refused({{{"x", good}}, whole});
  refused({{{"x", good}, {"s", good}, {"more", good}}, whole});
  refused({{{"x", good}, {"other", good}}, whole});
  refused(with_x(ragged({{1}})));
  refused(with_x(ragged({{1}, {5}})));
  const Tensor ids = Tensor::from<int64_t>({1, 2}, {2});
  refused(with_x(
      EnqueueData{.embedding_indices = ids, .sample_indices = Tensor::from<int64_t>({0}, {1})}));
  refused(with_x(
      EnqueueData{.embedding_indices = ids, .sample_indices = Tensor::from<int64_t>({1, 0}, {2})}));
  refused(with_x(
      EnqueueData{.embedding_indices = ids, .sample_indices = Tensor::from<int64_t>({0, 2}, {2})}));
  refused(with_x(EnqueueData{.embedding_indices = ids,
                             .aggregation_weights = Tensor::from<float>({1, 1}, {2})}));
  refused(with_x(EnqueueData{.embedding_indices = Tensor::from<int64_t>({1}, {1})}));
  refused({{{"x", good}, {"s", EnqueueData{.embedding_indices = ids}}}, whole});
  Tensor elsewhere;
  {
    const DeviceScope core(Device{.core = 0});
    elsewhere = Tensor::from<int64_t>({1, 2}, {2});
  }
  refused(with_x(EnqueueData{.embedding_indices = elsewhere}));
}

TEST(V1TPUEmbedding, CallsOutOfOrderAreRuntimeErrors) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbedding embedding(one_table(1));
  embedding.generate_enqueue({{{"x", ragged({{1}})}}});
  EXPECT_THROW(strategy.run([&] { embedding.get_activations(); }), RuntimeError);
  embedding.build();
  EXPECT_THROW(embedding.build(), RuntimeError);
  EXPECT_THROW(embedding.get_activations(), RuntimeError);
  step(strategy, embedding);
  EXPECT_THROW(strategy.run([&] { embedding.get_activations(); }), RuntimeError);
  const TPUEmbedding::Activations one = {{"x", Tensor::zeros({1, 1})}};
  EXPECT_THROW(strategy.run([&] { embedding.generate_send_gradients(one); }), RuntimeError);
}

TEST(V1TPUEmbedding, AFailedRunDropsPendingBatches) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbedding embedding(one_table(2));
  embedding.build();
  embedding.state_entries({{"t", "t"}})[0].set(Tensor::from<float>({0, 1, 2, 3, 4}, {5, 1}));
  embedding.generate_enqueue({{{"x", ragged({{1}})}}, {{"x", ragged({{2}})}}});
  EXPECT_THROW(strategy.run([&] {
    if (strategy.communicator().rank() == 1) throw ValueError("stop");
    embedding.get_activations();
  }),
               ValueError);
  embedding.generate_enqueue({{{"x", ragged({{3}})}}, {{"x", ragged({{4}})}}});
  const auto found = strategy.run([&] { return embedding.get_activations().at("x"); });
  EXPECT_EQ(found[0].item<float>(), 3);
  EXPECT_EQ(found[1].item<float>(), 4);
}

TEST(V1TPUEmbedding, RejectsGradientsThatAreMissingOrOfAnotherShape) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbedding embedding(one_table(1));
  embedding.build();
  embedding.generate_enqueue({{{"x", ragged({{1}})}}});
  strategy.run([&] { embedding.get_activations(); });
  const auto send = [&](const TPUEmbedding::Activations& gradients) {
    strategy.run([&] { embedding.generate_send_gradients(gradients); });
  };
  EXPECT_THROW(send({}), ValueError);
  EXPECT_THROW(send({{"x", Tensor()}}), ValueError);
  EXPECT_THROW(send({{"x", Tensor::zeros({1, 2})}}), ValueError);
  EXPECT_THROW(send({{"x", Tensor::zeros({1, 1}, DType::kFloat64)}}), TypeError);
  EXPECT_THROW(send({{"x", Tensor::zeros({1, 1})}, {"y", Tensor::zeros({1, 1})}}), ValueError);
  EXPECT_NO_THROW(send({{"x", Tensor::zeros({1, 1})}}));
}

TEST(V1TPUEmbedding, DummyVariablesCatchTheGradientsOfActivations) {
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(2);
  options.feature_to_config_dict.emplace("y", feature("t"));
  TPUEmbedding embedding(options);
  embedding.build();
  ASSERT_EQ(embedding.dummy_table_variables().size(), 1U);
  EXPECT_EQ(embedding.dummy_table_variables()[0].name(), "tpu_embedding_dummy_table_variable_t");
  EXPECT_EQ(embedding.dummy_table_variables()[0].shape(), Shape({1}));
  const CoreEnqueueData data = {{"x", ragged({{1}})}, {"y", ragged({{2}})}};
  const auto train = [&](double y_weight) {
    embedding.generate_enqueue({data, data});
    strategy.run([&] {
      GradientTape tape;
      const auto found = embedding.hook_dummy_table_variables(embedding.get_activations());
      Tensor loss = ops::sum(found.at("x")) * 2.0;
      if (y_weight != 0) loss = loss + ops::sum(found.at("y")) * y_weight;
      tape.gradient(loss, embedding.dummy_table_variables());
      embedding.generate_send_gradients(embedding.get_gradients_through_dummies());
    });
  };
  train(3);
  EXPECT_EQ(read(embedding, "t"), Values({1, 1 - 2 * 2, 1 - 2 * 3, 1, 1}));
  // Unlike in the TF2 engine, every feature must have a gradient.
  EXPECT_THROW(train(0), ValueError);
}

TEST(V1TPUEmbedding, PipelinedUpdatesAreSeenOneStepLate) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(1);
  options.pipeline_execution_with_tensor_core = true;
  TPUEmbedding embedding(options);
  embedding.build();
  Values seen;
  for (int i = 0; i < 3; ++i) {
    embedding.generate_enqueue({{{"x", ragged({{1}})}}});
    strategy.run([&] {
      const auto found = embedding.get_activations();
      seen.push_back(found.at("x").item<float>());
      embedding.generate_send_gradients({{"x", Tensor::full<float>({1, 1}, 1)}});
    });
  }
  EXPECT_EQ(seen, Values({1, 1, 0}));
  EXPECT_EQ(read(embedding, "t")[1], -2);
}

TEST(V1TPUEmbedding, NamesTablesAndSlotsAsRequested) {
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(1);
  options.optimization_parameters = AdamParameters{.learning_rate = 1.0};
  TPUEmbedding embedding(options);
  embedding.build();
  std::vector<std::string> names;
  for (const StateEntry& e : embedding.state_entries({{"t", "scope/v"}})) names.push_back(e.name);
  EXPECT_EQ(names, (std::vector<std::string>{"scope/v", "scope/v/Adam/m", "scope/v/Adam/v"}));
}

TEST(V1TPUEmbedding, ProfilesBatchesOfOneExample) {
  const TemporaryFolder folder;
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(2);
  options.feature_to_config_dict.emplace("s", feature("t", 3));
  options.profiler = {.sample_fraction = 1, .min_examples = 1};
  options.profile_data_directory = folder.path();
  TPUEmbedding embedding(options);
  embedding.build();
  // A sequence's fourth step is not looked up.
  embedding.generate_enqueue({{{"x", ragged({{1, 2}})}, {"s", ragged({{1, 3, 1, 4}})}},
                              {{"x", ragged({{}})}, {"s", ragged({{4}})}}});
  EXPECT_EQ(embedding.save_profiles(), 1);
  const TableProfile found = read_profiles(folder.path()).at(0);
  EXPECT_EQ(found.examples, 2);
  EXPECT_EQ(found.ids, 6);
  EXPECT_EQ(found.distinct_ids, 4);
  EXPECT_EQ(found.hot_rows.at(0).id, 1);
  EXPECT_EQ(found.hot_rows.at(0).count, 3);
}

TEST(V1TPUEmbedding, ProfilesDenseIds) {
  const TemporaryFolder folder;
  TPUStrategy strategy({.num_cores = 1});
  const auto scope = strategy.scope();
  TPUEmbeddingOptions options = one_table(3);
  options.profiler = {.sample_fraction = 1, .min_examples = 1};
  options.profile_data_directory = folder.path();
  TPUEmbedding embedding(options);
  embedding.build();
  embedding.generate_enqueue(
      {{{"x", EnqueueData{.embedding_indices = Tensor::from<int64_t>({2, 4, 2}, {3})}}}});
  EXPECT_EQ(embedding.save_profiles(), 1);
  const TableProfile found = read_profiles(folder.path()).at(0);
  EXPECT_EQ(found.examples, 3);
  EXPECT_EQ(found.ids, 3);
  EXPECT_EQ(found.hot_rows.at(0).id, 2);
  EXPECT_EQ(found.hot_rows.at(0).count, 2);
}

// The first ids are the frequent ones, which "mod" distributes more evenly.
void write_profile_for_mod(const std::string& folder) {
  LookupProfiler profiler({{.table_name = "t", .vocabulary_size = 5, .task_count = 2}}, 1,
                          {.sample_fraction = 1, .min_examples = 1});
  profiler.record({{RaggedTensor::from_rows<int64_t>({{0, 1}})}}, 1);
  profiler.save(folder);
}

TEST(V1TPUEmbedding, ProcessesUseThePartitionOfTheFirst) {
  const TemporaryFolder folder;
  write_profile_for_mod(folder / "0");
  std::vector<std::string> chosen(2);
  distribute::FakeJob job(2);
  const auto errors = job.run([&](distribute::ProcessGroup& group) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 1}, group);
    const auto scope = strategy.scope();
    TPUEmbeddingOptions options = one_table(2);
    // The second process does not see the file yet.
    options.profile_data_directory = folder / std::to_string(group.rank());
    chosen[group.rank()] = TPUEmbedding(options).partition_strategy();
  });
  EXPECT_EQ(errors, std::vector<std::string>(2));
  EXPECT_EQ(chosen, std::vector<std::string>(2, "mod"));
}

TEST(V1TPUEmbedding, ChoosesItsPartitionFromProfilesWithoutChangingValues) {
  const TemporaryFolder folder;
  std::vector<Values> found;
  std::vector<std::string> partitions;
  for (int run = 0; run < 3; ++run) {
    TPUStrategy strategy({.num_hosts = 2, .num_cores = 1});
    const auto scope = strategy.scope();
    TPUEmbeddingOptions options = one_table(4);
    options.profiler = {.sample_fraction = 1, .min_examples = 4};
    if (run > 0) options.profile_data_directory = folder.path();
    TPUEmbedding embedding(options);
    partitions.push_back(embedding.partition_strategy());
    embedding.build();
    const CoreEnqueueData data = {{"x", ragged({{0, 1}, {1}})}};
    embedding.generate_enqueue({data, data});
    step(strategy, embedding);
    EXPECT_EQ(embedding.save_profiles(), run > 0 ? 1 : 0);
    found.push_back(read(embedding, "t"));
  }
  EXPECT_EQ(partitions, (std::vector<std::string>{"div", "div", "mod"}));
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
}

}  // namespace keel::tpu::v1::tpu_embedding_v1_test
