// Tests savedmodel/keras/min_count.cc, internal/dynamic_tables.cc and
// layers/serving/steps/internal/serving_keys.cc: model files and serving plans of tables with
// dynamic ids.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/data/tfrecord.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/distributed/distributed_embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/savedmodel/keras/internal/dynamic_tables.h>
#include <keel/savedmodel/keras/internal/keras_weights_h5.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::dynamic_files_test {

using distribute::CPUStrategy;
using distribute::Strategy;
using distribute::TPUStrategy;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing_support::expect_same_bits;
using testing_support::floats;
using testing_support::IdRows;
using testing_support::ids;
using testing_support::message_of;
using testing_support::ragged;
using testing_support::strings;
using testing_support::TemporaryFolder;

std::unique_ptr<Strategy> strategy_of(bool engine) {
  if (!engine) return std::make_unique<CPUStrategy>();
  return std::make_unique<TPUStrategy>(distribute::TPUStrategyOptions{.num_cores = 1});
}

// A model with a table of strings, one of integers in lists, and an Embedding.
Functional make_model(const NotAdmitted& words = NotAdmitted::hashed(2), int64_t dim = 3,
                      KeyType key = KeyType::kString, int64_t capacity = 0) {
  const Table items = make_table(
      {.dim = dim,
       .optimizer = tpu::Adagrad({.learning_rate = 0.5}),
       .name = "items",
       .dynamic = DynamicVocabulary{.key = key, .capacity = capacity, .not_admitted = words}});
  const Table users =
      make_table({.dim = 2,
                  .optimizer = tpu::Adagrad({.learning_rate = 0.5}),
                  .combiner = "mean",
                  .name = "users",
                  .dynamic = DynamicVocabulary{.admission = Admission::count(2),
                                               .not_admitted = NotAdmitted::ignore()}});
  const Tensors inputs = {
      {"item", layers::input({.dtype = key == KeyType::kString ? DType::kString : DType::kInt64,
                              .name = "item"})},
      {"user", layers::ragged_input({.dtype = DType::kInt64, .name = "user"})},
      {"id", layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "id"})}};
  const layers::TPUEmbedding embedding(
      {.feature_config = Nest<FeatureConfig>::Dict{{"item", FeatureConfig{.table = items}},
                                                   {"user", FeatureConfig{.table = users}}},
       .name = "tables"});
  Tensors::Dict features = {{"item", inputs["item"]}, {"user", inputs["user"]}};
  const Tensors found = embedding(Tensors(std::move(features)));
  const layers::Embedding more(
      {.output_dim = 2,
       .dynamic = DynamicVocabulary{.not_admitted = NotAdmitted::default_row()},
       .name = "more"});
  const Tensor flat = layers::Reshape({.target_shape = {4}})(more(inputs["id"].tensor()));
  const Tensor all =
      layers::Concatenate({})(Tensors::list({found["item"].tensor(), found["user"].tensor(), flat}))
          .tensor();
  return Functional({.inputs = inputs, .outputs = layers::Dense({.units = 2})(all)});
}

Tensors batch_of(int64_t first, KeyType key = KeyType::kString) {
  const std::vector<std::string> names = {"b", "a", "\xC3\xA4\n", "", "new", "zz"};
  std::vector<std::string> words;
  std::vector<int64_t> numbers;
  for (int64_t i = first; i < first + 3; ++i) {
    words.push_back(names[i % 6]);
    numbers.push_back(i * 1000003 - 4);
  }
  return {{"item", key == KeyType::kString ? strings(words) : ids(numbers)},
          {"user", ragged(IdRows{{first, -5}, {}, {first, 1LL << 40, 7}})},
          {"id", ids({1, -2, first, 4, 5, first}, {3, 2})}};
}

void train(const Functional& model, KeyType key = KeyType::kString, int64_t steps = 4) {
  model->compile({.optimizer = "adagrad", .loss = "mse"});
  for (int64_t step = 0; step < steps; ++step) {
    model->fit(batch_of(step % 3, key), floats({1, 0, 0, 1, 1, 1}, {3, 2}),
               {.batch_size = 3, .shuffle = false, .verbose = Verbose::kSilent});
  }
}

std::vector<Tensor> predictions_of(Model& model, KeyType key = KeyType::kString) {
  std::vector<Tensor> out;
  for (const int64_t first : {0, 1, 3}) {
    out.push_back(model.predict(batch_of(first, key), {.verbose = Verbose::kSilent}).tensor());
  }
  return out;
}

void expect_equal_predictions(Model& a, Model& b, KeyType key = KeyType::kString) {
  const std::vector<Tensor> one = predictions_of(a, key), two = predictions_of(b, key);
  for (size_t i = 0; i < one.size(); ++i) expect_same_bits(one[i], two[i]);
}

DynamicTable table_of(const Model& model, const std::string& name) {
  for (const NamedDynamicTable& table : all_dynamic_tables(model)) {
    if (table.name == name) return table.table;
  }
  throw ValueError("no table ", name);
}

TEST(DynamicFilesTest, D100ModelFilesUnderBothStrategies) {
  const TemporaryFolder folder;
  for (const bool engine : {false, true}) {
    for (const KeyType key : {KeyType::kInt64, KeyType::kString}) {
      SCOPED_TRACE(str(engine ? "engine" : "variable", key == KeyType::kString ? ", strings" : ""));
      const auto strategy = strategy_of(engine);
      const auto scope = strategy->scope();
      const Functional model = make_model(NotAdmitted::hashed(2), 3, key);
      train(model, key);
      for (const char* file : {"model.keras", "model.h5"}) {
        SCOPED_TRACE(file);
        save_model(model, folder / file);
        const auto other = strategy_of(!engine);
        const auto other_scope = other->scope();
        const ModelHandle loaded = load_model(folder / file, {.compile = false});
        expect_equal_predictions(*model, *loaded, key);
        const DynamicTableState saved = table_of(*model, "items").state(),
                                now = table_of(*loaded, "items").state();
        EXPECT_EQ(saved.count.to_vector<int64_t>(), now.count.to_vector<int64_t>());
        EXPECT_THAT(now.last.to_vector<int64_t>(), testing::Each(0));
        EXPECT_EQ(now.statistics.size, now.statistics.assigned);
        EXPECT_EQ(table_of(*loaded, "users").state().pending_keys.size(), 0);
      }
      for (const char* file : {"model.weights.h5", "only.h5"}) {
        SCOPED_TRACE(file);
        save_weights(model, folder / file);
        const auto other = strategy_of(!engine);
        const auto other_scope = other->scope();
        const Functional another = make_model(NotAdmitted::hashed(2), 3, key);
        train(another, key, 1);
        table_of(*another, "users").assign_rows(ids({999}), floats({1, 2}, {1, 2}));
        EXPECT_THAT(load_weights(another, folder / file), testing::IsEmpty());
        EXPECT_FALSE(table_of(*another, "users").contains(ids({999}))[0]);
        expect_equal_predictions(*model, *another, key);
      }
    }
  }
}

TEST(DynamicFilesTest, D100ALoadedModelTrainsFurther) {
  const TemporaryFolder folder;
  const Functional model = make_model();
  train(model);
  save_model(model, folder / "model.keras");
  const ModelHandle loaded = load_model(folder / "model.keras");
  EXPECT_EQ(loaded->optimizer()->iterations(), model->optimizer()->iterations());
  const int64_t before = table_of(*loaded, "items").size();
  loaded->fit(batch_of(3), floats({1, 0, 0, 1, 1, 1}, {3, 2}),
              {.batch_size = 3, .verbose = Verbose::kSilent});
  EXPECT_GT(table_of(*loaded, "items").size(), before);
  EXPECT_EQ(table_of(*loaded, "items").statistics().updates, 1);
  // An id without a row has the initial row that it would have had without the file: the seed of
  // its initializer is in the file.
}

TEST(DynamicFilesTest, D100FilesHoldTheNamedDatasets) {
  const TemporaryFolder folder;
  const Functional model = make_model();
  train(model);
  save_weights(model, folder / "model.weights.h5");
  const Hdf5File file(folder / "model.weights.h5");
  const DynamicTableState state = table_of(*model, "items").state();
  const std::string group = "/layers/tpu_embedding/vars/items/";
  EXPECT_EQ(file.read(group + "keys").to_vector<std::string>(),
            state.keys.to_vector<std::string>());
  expect_same_bits(file.read(group + "rows"), state.rows);
  EXPECT_EQ(file.read(group + "count").to_vector<int64_t>(), state.count.to_vector<int64_t>());
  expect_same_bits(file.read(group + "fallback"), state.fallback);
  EXPECT_EQ(file.spec("/layers/embedding/vars/embeddings/rows").shape[1], 2);

  save_weights(model, folder / "legacy.h5");
  const Hdf5File legacy(folder / "legacy.h5");
  EXPECT_EQ(legacy.read("/tables/tables/items/keys:0").to_vector<std::string>(),
            state.keys.to_vector<std::string>());
}

TEST(DynamicFilesTest, D100MappedTablesAndEmptyTables) {
  const TemporaryFolder folder;
  const Functional model = make_model();
  model->predict(batch_of(0), {.verbose = Verbose::kSilent});
  for (const char* name : {"model.keras", "model.h5"}) {
    save_model(model, folder / name);
    const ModelHandle loaded = load_model(
        folder / name, {.compile = false, .mapped_tables = std::make_shared<MappedTables>()});
    EXPECT_EQ(table_of(*loaded, "items").size(), 0);
    expect_equal_predictions(*model, *loaded);
  }
}

TEST(DynamicFilesTest, D101MinCountOfAllTablesAndByTable) {
  const TemporaryFolder folder;
  const Functional model = make_model(NotAdmitted::zero());
  train(model, KeyType::kString, 5);
  const DynamicTableState all = table_of(*model, "items").state();
  const auto counts = all.count.to_vector<int64_t>();
  const auto keys = all.keys.to_vector<std::string>();
  std::vector<std::string> expected;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (counts[i] >= 3) expected.push_back(keys[i]);
  }
  ASSERT_GT(expected.size(), 0U);
  ASSERT_LT(expected.size(), keys.size());
  for (const char* name : {"model.keras", "model.h5"}) {
    save_model(model, folder / name, {.min_count = 3});
    EXPECT_EQ(table_of(*load_model(folder / name), "items").keys().to_vector<std::string>(),
              expected);
    save_model(model, folder / name, {.min_count = MinCount({{"tables/items", 3}})});
    const ModelHandle loaded = load_model(folder / name);
    EXPECT_EQ(table_of(*loaded, "items").keys().to_vector<std::string>(), expected);
    EXPECT_EQ(table_of(*loaded, "users").size(), table_of(*model, "users").size());
  }
  save_weights(model, folder / "some.weights.h5", {.min_count = 3});
  load_weights(model, folder / "some.weights.h5");
  EXPECT_EQ(table_of(*model, "items").keys().to_vector<std::string>(), expected);
  EXPECT_THROW(MinCount(-1), ValueError);
  EXPECT_THAT(message_of<ValueError>([&] {
                save_model(model, folder / "x.keras", {.min_count = MinCount({{"item", 3}})});
              }),
              HasSubstr("'item'"));
}

// Saves the weights with other values of some datasets, and returns the message of loading them.
template <class E>
std::string error_with(const Functional& model, const std::string& dataset, const Tensor& value) {
  const TemporaryFolder folder;
  Hdf5Contents contents = keras_weights_contents(*model);
  const std::string path = "/layers/tpu_embedding/vars/items/" + dataset;
  bool found = false;
  for (Hdf5Contents::Dataset& d : contents.datasets) {
    if (d.path != path) continue;
    d.get = [value] { return value; };
    found = true;
  }
  EXPECT_TRUE(found);
  write_hdf5("test", folder / "bad.weights.h5", contents);
  const std::vector<Tensor> before = predictions_of(*model, KeyType::kInt64);
  std::string out = message_of<E>([&] { load_weights(model, folder / "bad.weights.h5"); });
  const std::vector<Tensor> after = predictions_of(*model, KeyType::kInt64);
  for (size_t i = 0; i < before.size(); ++i) expect_same_bits(before[i], after[i]);
  EXPECT_THAT(out, AllOf(HasSubstr("bad.weights.h5"), HasSubstr(path)));
  return out;
}

TEST(DynamicFilesTest, D097DamagedFilesAreRefusedWithoutAChange) {
  const Functional model = make_model(NotAdmitted::hashed(2), 3, KeyType::kInt64);
  train(model, KeyType::kInt64);
  const DynamicTableState state = table_of(*model, "items").state();
  std::vector<int64_t> keys = state.keys.to_vector<int64_t>();
  const int64_t n = std::ssize(keys);
  ASSERT_GE(n, 3);
  std::vector<int64_t> twice = keys, swapped = keys, shorter(keys.begin() + 1, keys.end());
  twice[1] = twice[0];
  std::swap(swapped[0], swapped[2]);
  EXPECT_THAT(error_with<IoError>(model, "keys", ids(twice)), HasSubstr("distinct"));
  EXPECT_THAT(error_with<IoError>(model, "keys", ids(swapped)), HasSubstr("ascend"));
  const TemporaryFolder folder;
  // A shorter list of ids does not fit the rows, which are named.
  const auto short_keys = [&] {
    Hdf5Contents contents = keras_weights_contents(*model);
    for (Hdf5Contents::Dataset& d : contents.datasets) {
      if (d.path.ends_with("items/keys")) d.get = [&] { return ids(shorter); };
    }
    write_hdf5("test", folder / "bad.weights.h5", contents);
    load_weights(model, folder / "bad.weights.h5");
  };
  EXPECT_THAT(message_of<IoError>(short_keys), HasSubstr("items/rows"));
  EXPECT_THAT(error_with<IoError>(model, "keys", ids(keys, {n, 1})), HasSubstr("rank 1"));
  EXPECT_THAT(error_with<ValueError>(model, "keys", strings({"a"})), HasSubstr("int64"));
  EXPECT_THAT(error_with<ValueError>(model, "rows", Tensor::zeros({n, 4})), HasSubstr("dim 3"));
  error_with<IoError>(model, "rows", Tensor::zeros({n + 1, 3}));
  error_with<IoError>(model, "rows", Tensor::zeros({n * 3}));
  error_with<IoError>(model, "rows", Tensor::zeros({n, 3}, DType::kInt64));
  error_with<IoError>(model, "count", Tensor::zeros({n - 1}, DType::kInt64));
  error_with<IoError>(model, "count", Tensor::full<float>({n}, std::nanf("")));
  std::vector<int64_t> counts(n, 1);
  counts[0] = -1;
  error_with<IoError>(model, "count", ids(counts));
  counts[0] = int64_t{1} << 32;
  error_with<IoError>(model, "count", ids(counts));
  error_with<ValueError>(model, "fallback", Tensor::zeros({2, 4}));
  error_with<IoError>(model, "fallback", Tensor::zeros({6}));
}

TEST(DynamicFilesTest, FilesOfOtherModelsAreRefused) {
  const TemporaryFolder folder;
  const Functional model = make_model(NotAdmitted::zero(), 3, KeyType::kInt64);
  train(model, KeyType::kInt64);
  for (const char* file : {"model.weights.h5", "model.h5"}) {
    save_weights(model, folder / file);
    const auto error = [&](const Functional& other, KeyType key) {
      other->predict(batch_of(0, key), {.verbose = Verbose::kSilent});
      return message_of<ValueError>([&] { load_weights(other, folder / file); });
    };
    EXPECT_THAT(error(make_model(NotAdmitted::zero(), 3, KeyType::kString), KeyType::kString),
                HasSubstr("ids of type string"));
    EXPECT_THAT(error(make_model(NotAdmitted::zero(), 3, KeyType::kInt64, 2), KeyType::kInt64),
                HasSubstr("capacity 2"));
  }
}

TEST(DynamicFilesTest, EmbedReduceAndDistributedEmbedding) {
  const TemporaryFolder folder;
  const auto table = keras_rs::make_table({.name = "shops",
                                           .embedding_dim = 2,
                                           .optimizer = tpu::SGD({.learning_rate = 0.5}),
                                           .dynamic = DynamicVocabulary{}});
  for (const bool engine : {false, true}) {
    const auto strategy = strategy_of(engine);
    const auto scope = strategy->scope();
    const Tensor input = layers::input({.dtype = DType::kInt64, .name = "shop"});
    const layers::DistributedEmbedding one(
        {.feature_configs = keras_rs::FeatureConfig{.name = "shop",
                                                    .table = table,
                                                    .input_shape = {kUnknown},
                                                    .output_shape = {kUnknown, 2}}});
    const layers::EmbedReduce two({.output_dim = 2, .dynamic = DynamicVocabulary{}});
    const Functional model(
        {.inputs = input,
         .outputs = layers::Concatenate({})(Tensors::list({one(input), two(input)}))});
    model->compile({.optimizer = "sgd", .loss = "mse"});
    model->fit(ids({5, -6}), Tensor::zeros({2, 4}), {.verbose = Verbose::kSilent});
    for (const char* name : {"model.keras", "model.h5"}) {
      save_model(model, folder / name);
      const Tensor expected =
          model->predict(ids({-6, 5, 9}), {.verbose = Verbose::kSilent}).tensor();
      const auto other = strategy_of(!engine);
      const auto other_scope = other->scope();
      const ModelHandle loaded = load_model(folder / name, {.compile = false});
      expect_same_bits(expected,
                       loaded->predict(ids({-6, 5, 9}), {.verbose = Verbose::kSilent}).tensor());
      EXPECT_EQ(table_of(*loaded, "shops").size(), 2);
    }
  }
}

TEST(DynamicFilesTest, Int8TablesAreRefused) {
  const Functional model = make_model();
  model->predict(batch_of(0), {.verbose = Verbose::kSilent});
  EXPECT_THROW(with_int8_tables(*model), ValueError);
}

TEST(DynamicFilesTest, D105ServingPlansPredictTheSameBits) {
  const TemporaryFolder folder;
  for (const KeyType key : {KeyType::kInt64, KeyType::kString}) {
    for (const NotAdmitted& words : {NotAdmitted::zero(), NotAdmitted::ignore(),
                                     NotAdmitted::default_row(), NotAdmitted::hashed(3)}) {
      const Functional model = make_model(words, 3, key);
      train(model, key);
      const ServingPlan plan(model);
      EXPECT_THAT(plan.called_layers(), testing::IsEmpty());
      const std::vector<Tensor> expected = predictions_of(*model, key);
      size_t i = 0;
      for (const int64_t first : {0, 1, 3}) {
        expect_same_bits(plan(batch_of(first, key)).tensor(), expected[i++]);
      }
      // Training does not change the plan.
      train(model, key, 2);
      expect_same_bits(plan(batch_of(1, key)).tensor(), expected[1]);
    }
  }
}

TEST(DynamicFilesTest, D105SignaturesTakeExamplesWithStringIds) {
  const TemporaryFolder folder;
  const Functional model = make_model();
  train(model);
  const SignatureSpecs specs = {
      {"serve",
       {{"item", {.feature = data::FixedLenFeature{.dtype = DType::kString}}},
        {"user", {.feature = data::RaggedFeature{DType::kInt64}}},
        {"id", {.feature = data::FixedLenFeature{.shape = {2}, .dtype = DType::kInt64}}}}}};
  const Tensors batch = {{"item", strings({"a", "new"})},
                         {"user", ragged(IdRows{{1, -5}, {9}})},
                         {"id", ids({1, -2, 4, 77}, {2, 2})}};
  const Tensor examples =
      strings({data::serialize_example(
                   {{"item", strings({"a"})}, {"user", ids({1, -5})}, {"id", ids({1, -2})}}),
               data::serialize_example(
                   {{"item", strings({"new"})}, {"user", ids({9})}, {"id", ids({4, 77})}})});
  for (const char* name : {"a.keras", "a.h5"}) {
    save_model(model, folder / name, {.signatures = specs});
    const Signatures served = signatures(folder / name);
    const Tensors found = served.at("serve")(examples);
    expect_same_bits(flatten(found)[0].tensor(), model(batch).tensor());
  }
}

}  // namespace keel::dynamic_files_test
