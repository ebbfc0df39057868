// Tests savedmodel/estimator/internal/estimator_graph.cc and estimator_run.cc.
#include <keel/savedmodel/estimator/tpu_estimator.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/feature_columns/dense_features.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/losses/crossentropy.h>
#include <keel/layers/metrics/confusion/auc.h>
#include <keel/optimizers/adagrad.h>
#include <keel/optimizers/embedding/tpu_parameters.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"

namespace keel::estimator::tpu_estimator_test {

using testing::EndsWith;
using testing_support::expect_near;
using testing_support::TemporaryFolder;

namespace fc = feature_column;
using Values = std::vector<float>;
using Rows = std::vector<std::vector<int64_t>>;

TPUEstimatorOptions small(const std::string& folder, ModelFn model_fn,
                          std::optional<EmbeddingConfigSpec> spec, int cores = 1) {
  return {
      .model_fn = std::move(model_fn),
      .config = {.model_dir = folder, .cluster = {.num_cores = cores}, .log_step_count_steps = 0},
      .train_batch_size = cores,
      .embedding_config_spec = std::move(spec)};
}

// ---- A small click model: 40 users; half of them like even items, the other half odd items.

struct Clicks {
  std::vector<Column> columns;
  Clicks() {
    const auto user = fc::categorical_column_with_identity("user", 40);
    const auto item = fc::categorical_column_with_identity("item", 10);
    const auto seen = fc::categorical_column_with_identity("seen", 10);
    columns = {tpu::embedding_column(user, 4), fc::numeric_column("hour")};
    for (const auto& c : tpu::shared_embedding_columns({item, seen}, 4)) columns.push_back(c);
  }

  EmbeddingConfigSpec spec() const {
    return EmbeddingConfigSpec(
        {.feature_columns = columns,
         .optimization_parameters = tpu::AdagradParameters{.learning_rate = 0.3}});
  }

  ModelFn model_fn() const {
    return [columns = columns](const Tensors& features, const Tensors& labels, ModeKeys mode) {
      Tensor x = layers::DenseFeatures({.feature_columns = columns})(features).tensor();
      x = layers::Dense({.units = 16, .activation = "relu"})(x);
      const Tensor click = layers::Dense({.units = 1, .activation = "sigmoid"})(x);
      EstimatorSpec spec = {.mode = mode, .predictions = {{"click", click}}};
      if (mode == ModeKeys::kPredict) return spec;
      const losses::BinaryCrossentropy loss({});
      spec.loss = loss->call(labels.tensor(), click);
      spec.optimizer = optimizers::Adagrad({.learning_rate = 0.1});
      spec.eval_metrics = {{"auc", {metrics::AUC({}), labels.tensor(), click}}};
      return spec;
    };
  }

  static data::Dataset rows(int64_t count) {
    Rows user, item, seen;
    Values hour, label;
    for (int64_t row = 0; row < count; ++row) {
      user.push_back({row * 7 % 40});
      item.push_back({row * row % 10});
      seen.push_back(row % 3 == 0 ? std::vector<int64_t>{} : std::vector<int64_t>{row % 10, 3});
      hour.push_back(static_cast<float>(row % 24) / 24);
      label.push_back((user.back()[0] < 20) == (item.back()[0] % 2 == 0) ? 1.0F : 0.0F);
    }
    return data::Dataset::from_tensor_slices(
        Tensors::tuple({{{"user", RaggedTensor::from_rows(user)},
                         {"item", RaggedTensor::from_rows(item)},
                         {"seen", RaggedTensor::from_rows(seen)},
                         {"hour", Tensor::from(hour, {count})}},
                        Tensor::from(label, {count, 1})}));
  }
  static InputFn input(int64_t count) {
    return [=](int64_t batch_size) { return rows(count).batch(batch_size); };
  }

  TPUEstimatorOptions options(const std::string& folder) const {
    TPUEstimatorOptions out = small(folder, model_fn(), spec(), 4);
    out.train_batch_size = 64;
    return out;
  }
};

Values clicks(const Tensors& predictions) {
  return predictions["click"].tensor().to_vector<float>();
}

TEST(TPUEstimator, TrainsEvaluatesPredictsAndExports) {
  const TemporaryFolder folder;
  const Clicks model;
  TPUEstimator estimator(model.options(folder / "run"));
  const auto before = estimator.evaluate(Clicks::input(640));
  const TrainResult trained = estimator.train(Clicks::input(640), {.steps = 150});
  EXPECT_EQ(trained.global_step, 150);
  const auto after = estimator.evaluate(Clicks::input(640));
  EXPECT_LT(before.at("auc"), 0.7);
  EXPECT_GT(after.at("auc"), 0.98);
  EXPECT_LT(after.at("loss"), before.at("loss") / 2);
  EXPECT_EQ(after.at("global_step"), 150);

  // A short last batch is predicted too.
  const Values on_tpu = clicks(estimator.predict(Clicks::input(100)));
  ASSERT_EQ(on_tpu.size(), 100U);

  // Prediction on the host from the same checkpoint gives the same values.
  TPUEstimatorOptions host = model.options(folder / "run");
  host.eval_on_tpu = host.predict_on_tpu = false;
  TPUEstimator on_host(host);
  expect_near(clicks(on_host.predict(Clicks::input(100))), on_tpu, {.absolute = 1e-5});
  EXPECT_NEAR(on_host.evaluate(Clicks::input(640)).at("loss"), after.at("loss"), 1e-5);

  // So does the exported file, which does not depend on the estimator.
  const std::string path = estimator.export_saved_model(
      folder / "export", {{"user", layers::ragged_input({.dtype = DType::kInt64})},
                          {"item", layers::ragged_input({.dtype = DType::kInt64})},
                          {"seen", layers::ragged_input({.dtype = DType::kInt64})},
                          {"hour", layers::input({})}});
  EXPECT_THAT(path, EndsWith("/150/model.h5"));
  const ModelHandle served = load_model(path);
  const Tensors batch = *Clicks::rows(100).batch(100).iterator()->next();
  expect_near(clicks(served->predict(batch[0], {.verbose = Verbose::kSilent})), on_tpu,
              {.absolute = 1e-5});
}

TEST(TPUEstimator, ContinuesFromItsCheckpoint) {
  const TemporaryFolder folder;
  const Clicks model;
  set_random_seed(5);
  TPUEstimator whole(model.options(folder / "whole"));
  whole.train(Clicks::input(640), {.steps = 20});
  set_random_seed(5);
  TPUEstimator parts(model.options(folder / "parts"));
  parts.train(Clicks::input(640), {.steps = 10});
  // Another process resumes training.
  TPUEstimator second(model.options(folder / "parts"));
  EXPECT_EQ(second.train(Clicks::input(640), {.max_steps = 20}).global_step, 20);
  EXPECT_EQ(clicks(whole.predict(Clicks::input(64))), clicks(second.predict(Clicks::input(64))));
  EXPECT_EQ(second.train(Clicks::input(640), {.max_steps = 20}).global_step, 20);
}

TEST(TPUEstimator, GivesTheSameBitsForAnyNumberOfHostsAndEitherPartition) {
  std::vector<Values> found;
  for (const std::string partition : {"div", "mod"}) {
    for (const int hosts : {1, 2}) {
      const TemporaryFolder folder;
      const Clicks model;
      TPUEstimatorOptions options = model.options(folder / "run");
      options.config.cluster = {.num_hosts = hosts, .num_cores = 4 / hosts};
      EmbeddingConfigSpecOptions spec = *model.spec();
      spec.partition_strategy = partition;
      options.embedding_config_spec.emplace(spec);
      set_random_seed(5);
      TPUEstimator estimator(options);
      estimator.train(Clicks::input(640), {.steps = 5});
      found.push_back(clicks(estimator.predict(Clicks::input(64))));
    }
  }
  for (const Values& other : found) EXPECT_EQ(found[0], other);
}

TEST(TPUEstimator, TrainsOnTheHostWithTheModelsOptimizer) {
  const TemporaryFolder folder;
  const Clicks model;
  TPUEstimatorOptions options = model.options(folder / "run");
  options.use_tpu = false;
  TPUEstimator estimator(options);
  estimator.train(Clicks::input(640), {.steps = 200});
  EXPECT_GT(estimator.evaluate(Clicks::input(640)).at("auc"), 0.9);
}

std::vector<std::string> keys_of(const std::string& checkpoint) {
  const Hdf5File file(checkpoint);
  std::vector<std::string> out;
  for (const std::string& name : file.children("/entries")) {
    out.push_back(file.string_attribute("/entries/" + name, "key"));
  }
  return out;
}

TEST(TPUEstimator, NamesTablesAsARunOnTheHostDoes) {
  const TemporaryFolder folder;
  const Clicks model;
  std::map<bool, std::set<std::string>> weights;
  for (const bool use_tpu : {true, false}) {
    TPUEstimatorOptions options = model.options((folder / (use_tpu ? "tpu" : "host")));
    options.use_tpu = use_tpu;
    TPUEstimator estimator(options);
    estimator.train(Clicks::input(64), {.steps = 1});
    const auto keys = keys_of(*estimator.latest_checkpoint());
    weights[use_tpu] = {keys.begin(), keys.end()};
  }
  const std::string user = "model/dense_features/user_embedding/embedding_weights";
  for (const std::string& key : {user, std::string("model/item_seen_shared_embedding")}) {
    EXPECT_TRUE(weights[true].contains(key)) << key;
    EXPECT_TRUE(weights[false].contains(key)) << key;
  }
  EXPECT_TRUE(weights[true].contains(user + "/Adagrad"));
  EXPECT_TRUE(weights[true].contains("model/dense/kernel"));
  EXPECT_TRUE(weights[false].contains("model/dense_1/kernel"));
}

// ---- Models whose values are known exactly.

Column column(const std::string& key, int64_t dim = 2, tpu::EmbeddingColumnOptions options = {}) {
  if (!options.initializer) options.initializer = initializers::zeros();
  return tpu::embedding_column(fc::categorical_column_with_identity(key, 4), dim, options);
}

// Predicts the activations of the columns; the loss is their sum, weighted by `weights`.
ModelFn linear(const std::vector<Column>& columns, const Values& weights) {
  return [=](const Tensors& features, const Tensors&, ModeKeys mode) {
    const Tensor x = layers::DenseFeatures({.feature_columns = columns})(features).tensor();
    EstimatorSpec spec = {.mode = mode, .predictions = x};
    const Tensor w = Tensor::from(weights, {static_cast<int64_t>(weights.size())});
    spec.loss = ops::sum(ops::mean(x, {0}) * w);
    spec.optimizer = optimizers::SGD({.learning_rate = 1.0});
    return spec;
  };
}

// Every row looks up id 1 of every feature.
InputFn ones(const std::vector<std::string>& keys, int64_t count = 4) {
  return [=](int64_t batch_size) {
    Tensors::Dict features;
    for (const std::string& key : keys) {
      features.emplace(key, RaggedTensor::from_rows(Rows(count, {1})));
    }
    return data::Dataset::from_tensor_slices(
               Tensors::tuple({Tensors(features), Tensor::zeros({count})}))
        .batch(batch_size);
  };
}

EmbeddingConfigSpecOptions sgd_spec(const std::vector<Column>& columns, double rate) {
  return {
      .feature_columns = columns,
      .optimization_parameters = tpu::StochasticGradientDescentParameters{.learning_rate = rate}};
}

// Returns the row of id 1 after `steps` steps.
Values trained(const TPUEstimatorOptions& options, const std::vector<std::string>& keys,
               int64_t steps) {
  TPUEstimator estimator(options);
  estimator.train(ones(keys), {.steps = steps});
  return slice_rows(estimator.predict(ones(keys)), 0, 1).tensor().to_vector<float>();
}

TEST(SpecRowsH, H09_TheGradientMultiplierScalesActivationGradients) {
  const TemporaryFolder folder;
  EmbeddingConfigSpecOptions spec = sgd_spec({column("x")}, 0.5);
  spec.experimental_gradient_multiplier_fn = [](int64_t step) { return (step + 1) * 3.0; };
  const auto options =
      small(folder / "run", linear({spec.feature_columns[0]}, {1, -2}), EmbeddingConfigSpec(spec));
  EXPECT_EQ(trained(options, {"x"}, 1), Values({-1.5, 3}));
  // The multiplier of the second step is 6.
  EXPECT_EQ(trained(options, {"x"}, 1), Values({-4.5, 9}));
}

TEST(SpecRowsH, H07_PartitionStrategyIsKnownAndModIsForTheAcceleratorAlone) {
  const TemporaryFolder folder;
  const auto with = [&](const std::string& partition) {
    EmbeddingConfigSpecOptions spec = sgd_spec({column("x")}, 1);
    spec.partition_strategy = partition;
    return small(folder / "run", linear({column("x")}, {1, 1}), EmbeddingConfigSpec(spec));
  };
  EXPECT_THROW(with("invalid"), ValueError);
  EXPECT_NO_THROW(TPUEstimator(with("mod")));
  TPUEstimatorOptions eval_on_host = with("mod");
  eval_on_host.eval_on_tpu = false;
  EXPECT_THROW(TPUEstimator{eval_on_host}, ValueError);
  TPUEstimatorOptions host = with("mod");
  host.use_tpu = false;
  EXPECT_THROW(TPUEstimator{host}, ValueError);
  EXPECT_EQ(EmbeddingConfigSpecOptions{}.partition_strategy, "div");
}

TEST(TPUEstimator, AveragesTheLossOverCores) {
  // Four cores with one row each give the same result as one core with four rows.
  for (const int cores : {1, 4}) {
    const TemporaryFolder folder;
    const std::vector<Column> columns = {column("x")};
    TPUEstimatorOptions options = small(folder / "run", linear(columns, {1, -2}),
                                        EmbeddingConfigSpec(sgd_spec(columns, 0.5)), cores);
    options.train_batch_size = 4;
    EXPECT_EQ(trained(options, {"x"}, 1), Values({-0.5, 1})) << cores;
  }
}

TEST(TPUEstimator, RateFunctionsReceiveTheGlobalStepAcrossCalls) {
  const TemporaryFolder folder;
  const std::vector<Column> columns = {
      column("x", 1, {.learning_rate_fn = [](int64_t step) { return step == 0 ? 2.0 : 0.5; }})};
  const auto options =
      small(folder / "run", linear(columns, {1}), EmbeddingConfigSpec(sgd_spec(columns, 1)));
  EXPECT_EQ(trained(options, {"x"}, 1), Values({-2}));
  EXPECT_EQ(trained(options, {"x"}, 1), Values({-2.5}));
}

TEST(TPUEstimator, AcceptsDictsOfTablesAndFeatures) {
  const TemporaryFolder folder;
  const EmbeddingConfigSpec spec(
      {.optimization_parameters = tpu::StochasticGradientDescentParameters{.learning_rate = 1.0},
       .feature_to_config_dict = {{"x", tpu::v1::FeatureOptions{.table_id = "t"}}},
       .table_to_config_dict = {
           {"t",
            tpu::v1::TableOptions{
                .vocabulary_size = 4, .dimension = 1, .initializer = initializers::zeros()}}}});
  const ModelFn model_fn = [](const Tensors& features, const Tensors&, ModeKeys mode) {
    return EstimatorSpec{.mode = mode,
                         .predictions = features["x"],
                         .loss = ops::mean(features["x"].tensor()),
                         .optimizer = optimizers::SGD({})};
  };
  const auto options = small(folder / "run", model_fn, spec);
  EXPECT_EQ(trained(options, {"x"}, 1), Values({-1}));
  const auto keys = keys_of(*TPUEstimator(options).latest_checkpoint());
  EXPECT_NE(std::ranges::find(keys, "model/t"), keys.end());
}

TEST(TPUEstimator, ReturnsSequencesAndTheirLengths) {
  const TemporaryFolder folder;
  const Column steps =
      tpu::embedding_column(fc::sequence_categorical_column_with_identity("s", 4), 1,
                            {.initializer = initializers::ones(), .max_sequence_length = 2});
  const ModelFn model_fn = [=](const Tensors& features, const Tensors&, ModeKeys mode) {
    const Tensors found = layers::SequenceFeatures({.feature_columns = {steps}})(features);
    return EstimatorSpec{.mode = mode, .predictions = {{"steps", found[0]}, {"n", found[1]}}};
  };
  const InputFn input = [](int64_t) {
    return data::Dataset::from_tensors({{"s", RaggedTensor::from_rows(Rows{{1, 2, 3}, {1}})}});
  };
  for (const bool on_tpu : {true, false}) {
    TPUEstimatorOptions options =
        small(folder / "run", model_fn, EmbeddingConfigSpec(sgd_spec({steps}, 1)), 2);
    options.predict_on_tpu = on_tpu;
    const Tensors found = TPUEstimator(options).predict(input);
    EXPECT_EQ(found["steps"].tensor().to_vector<float>(), Values({1, 1, 1, 0}));
    EXPECT_EQ(found["n"].tensor().to_vector<int64_t>(), std::vector<int64_t>({2, 1}));
  }
}

TEST(TPUEstimator, AcceptsOrdinaryColumnsOnTheHostOnly) {
  const TemporaryFolder folder;
  const Column ordinary = fc::embedding_column(fc::categorical_column_with_identity("x", 4), 1,
                                               {.initializer = initializers::zeros()});
  TPUEstimatorOptions options =
      small(folder / "run", linear({ordinary}, {1}), EmbeddingConfigSpec(sgd_spec({ordinary}, 1)));
  EXPECT_THROW(TPUEstimator{options}, TypeError);
  options.use_tpu = false;
  EXPECT_EQ(trained(options, {"x"}, 1), Values({-1}));
}

TEST(TPUEstimator, LooksTensorCoreColumnsUpInTheModel) {
  const TemporaryFolder folder;
  const Column core =
      column("x", 1, {.embedding_lookup_device = "tpu_tensor_core", .tensor_core_width = 2});
  const auto options =
      small(folder / "run", linear({core}, {1}), EmbeddingConfigSpec(sgd_spec({core}, 1)), 2);
  EXPECT_EQ(trained(options, {"x"}, 2), Values({-2}));
}

TEST(TPUEstimator, RejectsColumnsWhoseDeviceDoesNotServeTheMode) {
  const TemporaryFolder folder;
  const Column host = column("x", 1, {.embedding_lookup_device = "cpu"});
  TPUEstimator trains(
      small(folder / "a", linear({host}, {1}), EmbeddingConfigSpec(sgd_spec({host}, 1))));
  EXPECT_THROW(trains.train(ones({"x"}), {.steps = 1}), ValueError);
  EXPECT_NO_THROW(trains.predict(ones({"x"})));
  const Column engine = column("x", 1, {.embedding_lookup_device = "tpu_embedding_core"});
  TPUEstimator predicts(
      small(folder / "b", linear({engine}, {1}), EmbeddingConfigSpec(sgd_spec({engine}, 1))));
  EXPECT_NO_THROW(predicts.train(ones({"x"}), {.steps = 1}));
  EXPECT_THROW(predicts.predict(ones({"x"})), ValueError);
}

TEST(TPUEstimator, RejectsColumnsThatTheModelDoesNotUse) {
  const TemporaryFolder folder;
  const std::vector<Column> columns = {column("x"), column("y")};
  TPUEstimator estimator(small(folder / "run", linear({columns[0]}, {1, 1}),
                               EmbeddingConfigSpec(sgd_spec(columns, 1))));
  EXPECT_THROW(estimator.train(ones({"x", "y"}), {.steps = 1}), RuntimeError);
}

TEST(TPUEstimator, RejectsAColumnInTwoScopesUnlessItIsShared) {
  const auto twice = [](const Column& c) -> ModelFn {
    return [=](const Tensors& features, const Tensors&, ModeKeys mode) {
      const Tensor a = layers::DenseFeatures({.feature_columns = {c}})(features).tensor();
      const Tensor b = layers::DenseFeatures({.feature_columns = {c}})(features).tensor();
      return EstimatorSpec{.mode = mode,
                           .predictions = a + b,
                           .loss = ops::mean(a + b),
                           .optimizer = optimizers::SGD({})};
    };
  };
  const TemporaryFolder folder;
  const Column plain = column("x");
  TPUEstimator refused(
      small(folder / "a", twice(plain), EmbeddingConfigSpec(sgd_spec({plain}, 1))));
  EXPECT_THROW(refused.train(ones({"x"}), {.steps = 1}), ValueError);
  const Column shared =
      tpu::shared_embedding_columns({fc::categorical_column_with_identity("x", 4)}, 2)[0];
  TPUEstimator taken(
      small(folder / "b", twice(shared), EmbeddingConfigSpec(sgd_spec({shared}, 1))));
  EXPECT_NO_THROW(taken.train(ones({"x"}), {.steps = 1}));
}

TEST(TPUEstimator, RejectsInvalidOptions) {
  const TemporaryFolder folder;
  const auto with = [&](auto change) {
    TPUEstimatorOptions options = small(folder / "run", linear({column("x")}, {1, 1}), {}, 2);
    change(options);
    return options;
  };
  using Options = TPUEstimatorOptions&;
  EXPECT_THROW(TPUEstimator(with([](Options o) { o.model_fn = nullptr; })), ValueError);
  EXPECT_THROW(TPUEstimator(with([](Options o) { o.config.model_dir = ""; })), ValueError);
  EXPECT_THROW(TPUEstimator(with([](Options o) { o.train_batch_size = 0; })), ValueError);
  EXPECT_THROW(TPUEstimator(with([](Options o) { o.train_batch_size = 3; })), ValueError);
  EXPECT_THROW(TPUEstimator(with([](Options o) { o.eval_batch_size = 3; })), ValueError);
  EXPECT_NO_THROW(TPUEstimator(with([](Options o) {
    o.eval_batch_size = 3;
    o.eval_on_tpu = false;
  })));
  EXPECT_THROW(TPUEstimator(with([](Options o) { o.config.tpu_config.iterations_per_loop = 0; })),
               ValueError);
  EXPECT_THROW(TPUEstimator(with([](Options o) { o.config.save_checkpoints_steps = 0; })),
               ValueError);
  EXPECT_THROW(TPUEstimator(with([](Options o) { o.config.keep_checkpoint_max = -1; })),
               ValueError);
  TPUEstimator estimator(with([](Options) {}));
  EXPECT_THROW(estimator.train(ones({"x"}), {.steps = 1, .max_steps = 1}), ValueError);
  EXPECT_THROW(estimator.train(ones({"x"}), {.steps = 0}), ValueError);
  EXPECT_THROW(estimator.evaluate(ones({"x"}), 0), ValueError);
  EXPECT_THROW(estimator.train(ones({"x"}, 1), {.steps = 1}), ValueError);
  EXPECT_THROW(estimator.export_saved_model(folder / "e", {{"x", layers::input({})}}),
               RuntimeError);
}

TEST(TPUEstimator, RejectsIncompleteSpecs) {
  const TemporaryFolder folder;
  const auto returning = [&](const EstimatorSpec& spec) {
    return TPUEstimator(small(folder / "run",
                              [=](const Tensors& features, const Tensors&, ModeKeys mode) {
                                EstimatorSpec out = spec;
                                out.mode = mode;
                                if (spec.loss) out.loss = ops::mean(features["x"].tensor());
                                return out;
                              },
                              {}));
  };
  const InputFn input = [](int64_t batch_size) {
    return data::Dataset::from_tensor_slices(
               Tensors::tuple({{{"x", Tensor::zeros({2, 1})}}, Tensor::zeros({2})}))
        .batch(batch_size);
  };
  const Tensor yes = Tensor::scalar<float>(0);
  EXPECT_THROW(returning({}).train(input, {.steps = 1}), ValueError);
  EXPECT_THROW(returning({}).evaluate(input), ValueError);
  EXPECT_THROW(returning({}).predict(input), ValueError);
  EXPECT_THROW(returning({.loss = yes}).train(input, {.steps = 1}), ValueError);
  EXPECT_NO_THROW(returning({.loss = yes, .optimizer = "sgd"}).train(input, {.steps = 1}));
}

TEST(TPUEstimator, ANaNLossEndsTrainingAndChangesNothing) {
  const TemporaryFolder folder;
  const Column x = column("x", 1);
  const auto spec = EmbeddingConfigSpec(sgd_spec({x}, 1));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  TPUEstimator estimator(small(folder / "run", linear({x}, {nan}), spec));
  EXPECT_THROW(estimator.train(ones({"x"}), {.steps = 1}), ValueError);
  EXPECT_FALSE(estimator.latest_checkpoint());
}

TEST(TPUEstimator, ChecksPointsOfLoopsOnly) {
  const TemporaryFolder folder;
  const Column x = column("x", 1);
  TPUEstimatorOptions options =
      small(folder / "run", linear({x}, {1}), EmbeddingConfigSpec(sgd_spec({x}, 1)));
  options.config.tpu_config.iterations_per_loop = 4;
  options.config.save_checkpoints_steps = 3;
  options.config.keep_checkpoint_max = 0;
  TPUEstimator estimator(options);
  estimator.train(ones({"x"}), {.steps = 10});
  std::set<std::string> saved;
  for (const auto& entry : std::filesystem::directory_iterator(folder / "run")) {
    if (entry.path().extension() == ".h5") saved.insert(entry.path().stem().string());
  }
  EXPECT_EQ(saved, (std::set<std::string>{"model.ckpt-4", "model.ckpt-8", "model.ckpt-10"}));
}

TEST(TPUEstimator, TrainsOneEpochWithoutSteps) {
  const TemporaryFolder folder;
  const Column x = column("x", 1);
  TPUEstimatorOptions options =
      small(folder / "run", linear({x}, {1}), EmbeddingConfigSpec(sgd_spec({x}, 1)), 2);
  TPUEstimator estimator(options);
  EXPECT_EQ(estimator.train(ones({"x"}, 7)).global_step, 3);  // the seventh row is skipped
}

TEST(TPUEstimator, LookupStatisticsDoNotChangeTraining) {
  std::vector<Values> found;
  const TemporaryFolder folder;
  for (const bool profiled : {false, true, true}) {
    const Clicks model;
    TPUEstimatorOptions options = model.options((folder / ("run" + std::to_string(found.size()))));
    options.config.cluster = {.num_hosts = 2, .num_cores = 2};
    EmbeddingConfigSpecOptions spec = *model.spec();
    if (profiled) spec.profile_data_directory = folder / "profiles";
    options.embedding_config_spec.emplace(spec);
    set_random_seed(5);
    TPUEstimator estimator(options);
    estimator.train(Clicks::input(640), {.steps = 60});
    found.push_back(clicks(estimator.predict(Clicks::input(64))));
  }
  EXPECT_EQ(found[0], found[1]);
  EXPECT_EQ(found[0], found[2]);
  const auto files = std::filesystem::directory_iterator(folder / "profiles");
  EXPECT_EQ(std::distance(files, std::filesystem::directory_iterator()), 2);
}

}  // namespace keel::estimator::tpu_estimator_test
