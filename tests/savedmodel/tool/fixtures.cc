// Writes the files that the tests of the tool and of the C interface read: `tool_fixtures FOLDER`.
//
//   ranker.keras, ranker.h5      a trained model with dense and ragged inputs and a signature
//   ranker.weights.h5, alone.h5  its weights, in both formats
//   rows.*                       inputs for it, as JSON, CSV and records; expected.json
//   mixed.keras                  inputs of every numeric dtype and layout, two outputs
//   same.keras                   returns its ragged and its sparse input
//   engine.keras, host.keras     trained models with TPUEmbedding, on cores and on the host
//   checkpoints/                 two checkpoints of it
//   large.keras, large.h5        a model with a table of 1280000 bytes
//   dynamic.keras, dynamic.h5, dynamic.weights.h5, later.keras, dynamic_checkpoints/
//                                a model with tables for unbounded ids, and after one more step
#include <filesystem>
#include <fstream>
#include <iostream>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/data/tfrecord.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/embed_reduce.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

namespace keel {
namespace {

using data::FixedLenFeature;
using data::RaggedFeature;

constexpr int64_t kRows = 5;

Functional ranker() {
  const Tensor age = layers::input({.shape = {2}, .name = "age"});
  const Tensor user = layers::input({.shape = {1}, .dtype = DType::kInt64, .name = "user"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const Tensor users = layers::Flatten({.name = "flat"})(
      layers::Embedding({.input_dim = 8, .output_dim = 2, .name = "users"})(user));
  const Tensor items =
      layers::EmbedReduce({.input_dim = 10, .output_dim = 3, .name = "items"})(seen).tensor();
  const Tensor all =
      layers::Concatenate({.name = "all"})(Tensors::list({age, users, items})).tensor();
  const Tensor hidden = layers::Dense({.units = 4, .activation = "relu", .name = "hidden"})(all);
  return Functional(
      {.inputs = {{"age", age}, {"seen", seen}, {"user", user}},
       .outputs = layers::Dense({.units = 1, .activation = "sigmoid", .name = "score"})(hidden),
       .name = "ranker"});
}

// Inputs: ages with two numbers, users, and items seen (none in the second row).
Tensors inputs() {
  std::vector<float> ages;
  std::vector<int64_t> users;
  for (int64_t i = 0; i < kRows; ++i) {
    ages.push_back(static_cast<float>(i) * 0.25F);
    ages.push_back(1.5F - static_cast<float>(i));
    users.push_back((i * 3) % 8);
  }
  return {{"age", Tensor::from(ages, {kRows, 2})},
          {"user", Tensor::from(users, {kRows, 1})},
          {"seen", RaggedTensor::from_rows<int64_t>({{1, 2}, {}, {9}, {4, 4, 7}, {0}})}};
}

template <class T>
std::string joined(std::span<const T> values, const char* separator) {
  std::string out;
  for (const T& value : values) out += (out.empty() ? "" : separator) + str(value);
  return out;
}

template <class T>
std::string json(const char* name, const Tensor& value, const std::string& splits = "") {
  const auto dims = value.shape().dims();
  return str("{\"name\": \"", name, "\", \"dtype\": \"", value.dtype(), "\", \"shape\": [",
             joined(dims, ", "), "], ", splits, "\"data\": [", joined(value.data<T>(), ", "), "]}");
}

void write_rows(const std::string& folder, const Tensors& rows) {
  const RaggedTensor seen = rows["seen"].leaf().ragged();
  const std::string splits =
      "\"row_splits\": [" + joined(seen.row_splits.data<int64_t>(), ", ") + "], ";
  std::ofstream(folder + "/rows.json") << "{\"order\": [\"age\", \"user\", \"seen\"], \"inputs\": ["
                                       << json<float>("age", rows["age"].tensor()) << ",\n"
                                       << json<int64_t>("user", rows["user"].tensor()) << ",\n"
                                       << json<int64_t>("seen", seen.values, splits) << "]}\n";
  std::ofstream csv(folder + "/rows.csv");
  csv << "label,user,seen,age\n";
  data::TFRecordWriter records(folder + "/rows.tfrecord");
  data::TFRecordWriter packed(folder + "/rows.tfrecord.gz", {.compression_type = "GZIP"});
  for (int64_t i = 0; i < kRows; ++i) {
    const Tensors row = slice_rows(rows, i, i + 1);
    const Tensor items = row["seen"].leaf().ragged().values;
    const Tensor age = row["age"].tensor(), user = row["user"].tensor();
    csv << "1," << joined(user.data<int64_t>(), " ") << ',' << joined(items.data<int64_t>(), " ")
        << ',' << joined(age.data<float>(), ";") << '\n';
    const std::string example =
        data::serialize_example({{"age", age}, {"user_id", user}, {"seen", items}});
    records.write(example);
    packed.write(example);
  }
  records.close();
  packed.close();
}

void write_mixed(const std::string& folder) {
  const Tensor wide = layers::input({.shape = {2, 2}, .name = "wide"});
  const Tensor id = layers::input({.shape = {3}, .dtype = DType::kInt32, .name = "id"});
  const SparseTensor tags =
      layers::sparse_input({.shape = {6}, .dtype = DType::kInt64, .name = "tags"});
  const Tensor found = layers::EmbedReduce({.input_dim = 5, .output_dim = 2, .name = "ids"})(id);
  const Tensor tagged =
      layers::EmbedReduce({.input_dim = 5, .output_dim = 2, .name = "tagged"})(tags).tensor();
  const Tensor flat = layers::Flatten({.name = "flat"})(wide);
  const Tensor all =
      layers::Concatenate({.name = "all"})(Tensors::list({flat, found, tagged})).tensor();
  const Functional model({.inputs = {{"id", id}, {"tags", tags}, {"wide", wide}},
                          .outputs = {{"a", layers::Dense({.units = 2, .name = "a"})(all)},
                                      {"b", layers::Dense({.units = 1, .name = "b"})(all)}},
                          .name = "mixed"});
  save_model(model, folder + "/mixed.keras");
}

void write_same(const std::string& folder) {
  const RaggedTensor seen = layers::ragged_input({.name = "seen"});
  const SparseTensor tags = layers::sparse_input({.shape = {6}, .name = "tags"});
  const Functional model(
      {.inputs = {{"seen", seen}, {"tags", tags}},
       .outputs = {{"a", layers::Identity({.name = "a"})(Tensors(TensorLike(seen))).leaf()},
                   {"b", layers::Identity({.name = "b"})(Tensors(TensorLike(tags))).leaf()}}});
  save_model(model, folder + "/same.keras");
}

// A compiled model with one input, and the same model with an unknown optimizer.
void write_compiled(const std::string& folder) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Functional model(
      {.inputs = x, .outputs = layers::Dense({.units = 1, .name = "only"})(x), .name = "compiled"});
  model->compile({.optimizer = "adam", .loss = "mse"});
  save_model(model, folder + "/compiled.keras");
  const ZipFile zip(folder + "/compiled.keras");
  std::string config = zip.read("config.json", 1 << 20);
  config.replace(config.find("\"Adam\""), 6, "\"Nobody\"");
  zip.extract("model.weights.h5", folder + "/compiled.weights");
  ZipWriter unknown(folder + "/unknown.keras");
  unknown.add("metadata.json", zip.read("metadata.json", 1 << 20));
  unknown.add("config.json", config);
  unknown.add_file("model.weights.h5", folder + "/compiled.weights");
  unknown.finish();
  std::ofstream(folder + "/any_name.json")
      << R"({"inputs": [{"name": "dense_9_input", "dtype": "float32", "shape": [1, 2], )"
      << R"("data": [1, 2]}]})";
  std::ofstream(folder + "/other_names.json")
      << R"({"inputs": [{"name": "a", "dtype": "float32", "shape": [1, 2], "data": [1, 2]}, )"
      << R"({"name": "b", "dtype": "float32", "shape": [1, 2], "data": [1, 2]}]})";
}

// Runs one step of a model whose table is in an engine or a variable.
void write_trained(distribute::Strategy& strategy, const std::string& path) {
  const auto scope = strategy.scope();
  const optimizers::Adam adam({});
  const Tensor id = layers::input({.dtype = DType::kInt64, .name = "id"});
  const Table users = make_table({.vocabulary_size = 8, .dim = 2, .name = "users"});
  const layers::TPUEmbedding tables({.feature_config = {{"id", FeatureConfig{.table = users}}},
                                     .optimizer = adam,
                                     .name = "tables"});
  const Tensor found = tables(Tensors{{"id", id}})["id"].tensor();
  const Functional model({.inputs = {{"id", id}},
                          .outputs = layers::Dense({.units = 1, .name = "score"})(found),
                          .name = "trained"});
  model->compile({.optimizer = adam, .loss = "mse"});
  model->fit(Tensors{{"id", Tensor::from<int64_t>({1, 2}, {2})}}, Tensor::full<float>({2, 1}, 1),
             {.verbose = Verbose::kSilent});
  save_model(model, path);
}

// A table that is large enough to be read in place.
void write_large(const std::string& folder) {
  constexpr int64_t kTableRows = 20000, kDim = 16;
  const Tensor id = layers::input({.shape = {1}, .dtype = DType::kInt64, .name = "id"});
  const Tensor found =
      layers::Embedding({.input_dim = kTableRows, .output_dim = kDim, .name = "items"})(id);
  const Functional model(
      {.inputs = id, .outputs = layers::Flatten({.name = "flat"})(found), .name = "large"});
  save_model(model, folder + "/large.keras");
  save_model(model, folder + "/large.h5");
}

// Ids of users are integers, 8714213 the most frequent one; ids of words are strings.
void write_dynamic(const std::string& folder) {
  const auto table = [](const char* name, KeyType key, const NotAdmitted& not_admitted) {
    return make_table({.dim = 2,
                       .initializer = initializers::random_uniform(-1, 1, 3),
                       .name = name,
                       .dynamic = DynamicVocabulary{.key = key,
                                                    .capacity = 100,
                                                    .admission = Admission::count(2),
                                                    .eviction = Eviction::lru(),
                                                    .not_admitted = not_admitted}});
  };
  const Tensor user = layers::input({.dtype = DType::kInt64, .name = "user"});
  const Tensor word = layers::input({.dtype = DType::kString, .name = "word"});
  const layers::TPUEmbedding tables(
      {.feature_config = {{"user", FeatureConfig{.table = table("users", KeyType::kInt64,
                                                                NotAdmitted::zero())}},
                          {"word", FeatureConfig{.table = table("words", KeyType::kString,
                                                                NotAdmitted::hashed(2))}}},
       .name = "tables"});
  const Tensors inputs = {{"user", user}, {"word", word}};
  const Tensors found = tables(inputs);
  const Tensor all = layers::Concatenate({.name = "all"})(
                         Tensors::list({found["user"].tensor(), found["word"].tensor()}))
                         .tensor();
  const Functional model({.inputs = inputs,
                          .outputs = layers::Dense({.units = 1, .name = "score"})(all),
                          .name = "dynamic"});
  model->compile({.optimizer = "adagrad", .loss = "mse"});
  const Tensors batch = {{"user", Tensor::from<int64_t>({8714213, -5, 8714213}, {3})},
                         {"word", Tensor::from<std::string>({"abc", "d e", "abc"}, {3})}};
  const Tensor labels = Tensor::full<float>({3, 1}, 1);
  for (int step = 0; step < 3; ++step) model->train_on_batch(batch, labels);
  const Tensors once = {{"user", Tensor::from<int64_t>({77, 8714213}, {2})},
                        {"word", Tensor::from<std::string>({"once", "abc"}, {2})}};
  model->train_on_batch(once, Tensor::full<float>({2, 1}, 1));
  save_model(model, folder + "/dynamic.keras");
  save_model(model, folder + "/dynamic.h5");
  save_weights(model, folder + "/dynamic.weights.h5");
  const Tensors asked = {{"user", Tensor::from<int64_t>({8714213, 1LL << 60, -5}, {3})},
                         {"word", Tensor::from<std::string>({"abc", "never seen", ""}, {3})}};
  std::ofstream(folder + "/dynamic_rows.json")
      << "{\"inputs\": [" << json<int64_t>("user", asked["user"].tensor()) << ",\n"
      << R"({"name": "word", "dtype": "string", "shape": [3], "data": ["abc", "never seen", ""]}]})";
  std::ofstream(folder + "/dynamic_expected.json")
      << "{\"outputs\": [" << json<float>("score", model(asked).tensor()) << "]}\n";
  Checkpoint checkpoint(
      {.model = model, .optimizers = {{"adagrad", OptimizerHandle(kAdopt, model->optimizer())}}});
  CheckpointManager manager(checkpoint, folder + "/dynamic_checkpoints");
  manager.save(1);
  model->train_on_batch(once, Tensor::full<float>({2, 1}, 1));
  manager.save(2);
  save_model(model, folder + "/later.keras");
}

void write_all(const std::string& folder) {
  std::filesystem::create_directories(folder);
  const Functional model = ranker();
  const Tensors rows = inputs();
  write_rows(folder, rows);
  model->compile({.optimizer = optimizers::Adam({.learning_rate = 0.05}), .loss = "mse"});
  Checkpoint checkpoint(
      {.model = model, .optimizers = {{"adam", OptimizerHandle(kAdopt, model->optimizer())}}});
  CheckpointManager manager(checkpoint, folder + "/checkpoints");
  for (int64_t step = 1; step <= 2; ++step) {
    model->train_on_batch(rows, Tensor::full<float>({kRows, 1}, 1));
    manager.save(step);
  }
  const SaveOptions options = {
      .include_optimizer = true,
      .signatures = {
          {"serve_examples",
           {{"age", {.feature = FixedLenFeature{.shape = {2}}}},
            {"user_id",
             {.feature = FixedLenFeature{.shape = {1}, .dtype = DType::kInt64}, .input = "user"}},
            {"seen", {.feature = RaggedFeature{DType::kInt64}}}}}}};
  save_model(model, folder + "/ranker.keras", options);
  save_model(model, folder + "/ranker.h5", options);
  save_weights(model, folder + "/ranker.weights.h5");
  save_weights(model, folder + "/alone.h5");
  const Tensor scores = model(rows).tensor();
  std::ofstream expected(folder + "/expected.json");
  expected << "{\"outputs\": [" << json<float>("score", scores) << "]}\n";
  write_mixed(folder);
  write_compiled(folder);
  distribute::TPUStrategy cores({.num_cores = 2});
  write_trained(cores, folder + "/engine.keras");
  distribute::CPUStrategy host;
  write_trained(host, folder + "/host.keras");
  write_same(folder);
  write_large(folder);
  write_dynamic(folder);
}

}  // namespace
}  // namespace keel

int main(int argc, char** argv) {
  try {
    if (argc != 2) throw keel::ValueError("usage: tool_fixtures FOLDER");
    keel::write_all(argv[1]);
    return 0;
  } catch (const std::exception& error) {
    std::cerr << "tool_fixtures: " << error.what() << '\n';
    return 2;
  }
}
