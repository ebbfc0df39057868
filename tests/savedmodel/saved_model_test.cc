#include <keel/savedmodel/saved_model.h>

#include <filesystem>

#include <gtest/gtest.h>

#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/framework/random.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>

#include "tests/support/files.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::saved_model_test {

using distribute::TPUStrategy;
using layers::BatchNormalization;
using layers::Dense;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::values_of;
using testing_support::write_bytes;

Functional small_model() {
  const Tensor id = layers::input({.shape = {1}, .dtype = DType::kInt64, .name = "id"});
  const Tensor embedded = layers::Embedding({.input_dim = 5, .output_dim = 2, .name = "table"})(id);
  const Tensor flat = layers::Flatten({.name = "flat"})(embedded);
  const Tensor y = Dense({.units = 1, .name = "out"})(BatchNormalization({.name = "norm"})(flat));
  return Functional({.inputs = id, .outputs = y, .name = "small"});
}

Tensors ids() { return Tensor::from<int64_t>({0, 4, 2}, {3, 1}); }

TEST(SavedModelTest, LoadedModelsAreEqual) {
  const TemporaryFolder folder;
  for (const char* name : {"a.keras", "a.h5", "a.hdf5"}) {
    const Functional model = small_model();
    save_model(model, folder / name);
    EXPECT_EQ(values_of(load_model(folder / name)(ids())), values_of(model(ids())));
  }
}

TEST(SavedModelTest, LoadedModelsAreCompiledUnlessDisabled) {
  const TemporaryFolder folder;
  for (const char* name : {"a.keras", "a.h5"}) {
    const Functional model = small_model();
    save_model(model, folder / name);
    EXPECT_FALSE(load_model(folder / name)->compiled()) << "and no error";
    model->compile({.optimizer = "adam", .loss = "mse"});
    save_model(model, folder / name);
    EXPECT_TRUE(load_model(folder / name)->compiled());
    EXPECT_FALSE(load_model(folder / name, {.compile = false})->compiled());
  }
}

TEST(SavedModelTest, SavingTwiceMakesEqualBytes) {
  const TemporaryFolder folder;
  const Functional model = small_model();
  save_model(model, folder / "a.h5");
  save_model(model, folder / "b.h5");
  save_model(load_model(folder / "a.h5"), folder / "c.h5");
  EXPECT_EQ(read_bytes(folder / "a.h5"), read_bytes(folder / "b.h5"));
  EXPECT_EQ(read_bytes(folder / "a.h5"), read_bytes(folder / "c.h5"));
}

TEST(SavedModelTest, AnExistingFileIsReplacedUnlessDisabled) {
  const TemporaryFolder folder;
  write_bytes(folder / "a.h5", "old");
  EXPECT_THROW(save_model(small_model(), folder / "a.h5", {.overwrite = false}), ValueError);
  EXPECT_EQ(read_bytes(folder / "a.h5"), "old");
  save_model(small_model(), folder / "a.h5");
  EXPECT_NO_THROW(load_model(folder / "a.h5"));
}

TEST(SavedModelTest, ErrorsOfTheModelAreFoundWithoutSaving) {
  const TemporaryFolder folder;
  const Functional model = small_model();
  const auto feature = [](const char* name) {
    return SignatureSpecs{
        {"examples",
         {{name,
           {.feature = data::FixedLenFeature{.dtype = DType::kInt64,
                                             .default_value = Tensor::scalar<int64_t>(0)}}}}}};
  };
  EXPECT_NO_THROW(check_save_model(*model, folder / "a.keras", {.signatures = feature("id")}));
  EXPECT_THROW(check_save_model(*model, folder / "a.keras", {.signatures = feature("")}),
               ValueError);
  EXPECT_THROW(check_save_model(*model, folder / "a.txt"), ValueError);
  for (const bool for_keras : {false, true}) {
    EXPECT_NO_THROW(check_save_model(*model, folder / "a.keras", {.for_keras = for_keras}));
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "a.keras"));
}

TEST(SavedModelTest, TheSuffixChoosesTheFormat) {
  const TemporaryFolder folder;
  for (const char* name : {"a", "a.txt", "a.weights.h5"}) {
    EXPECT_THROW(save_model(small_model(), folder / name), ValueError);
    EXPECT_THROW(load_model(folder / name), ValueError);
  }
  EXPECT_THROW(load_model(folder / "none.h5"), IoError);
  EXPECT_THROW(save_model(small_model(), folder / "none/a.h5"), IoError);
}

// tf.keras before 2.12 wrote HDF5 under any name.
TEST(SavedModelTest, TheFirstBytesTellTheFormatOfAFile) {
  const TemporaryFolder folder;
  const Functional model = small_model();
  save_model(model, folder / "a.h5");
  save_model(model, folder / "a.keras");
  std::filesystem::rename(folder / "a.h5", folder / "legacy.keras");
  std::filesystem::rename(folder / "a.keras", folder / "archive.h5");
  for (const char* name : {"legacy.keras", "archive.h5"}) {
    EXPECT_EQ(to_json(load_model(folder / name)->get_config()), to_json(model->get_config()));
  }
}

TEST(SavedModelTest, ALossWithoutAnOptimizerIsKept) {
  const TemporaryFolder folder;
  for (const char* name : {"a.keras", "a.h5"}) {
    const Functional model = small_model();
    model->compile_from_config(Config::dict({{"loss", "mse"}}));
    save_model(model, folder / name);
    const ModelHandle same = load_model(folder / name);
    EXPECT_TRUE(same->get_compile_config()["optimizer"].is_null()) << name;
    const std::string loss = same->get_compile_config()["loss"].string();
    EXPECT_EQ(loss, name == std::string("a.keras") ? "mse" : "mean_squared_error");
    const Tensor zeros = Tensor::zeros({3, 1});
    EXPECT_EQ(same->test_on_batch(ids(), zeros), model->test_on_batch(ids(), zeros));
    EXPECT_THROW(same->train_on_batch(ids(), zeros), RuntimeError);
  }
}

TEST(SavedModelTest, SavingInAReplicaIsAnError) {
  const TemporaryFolder folder;
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const Functional model = small_model();
  EXPECT_THROW(strategy.run([&] { save_model(model, folder / "a.h5"); }), RuntimeError);
  EXPECT_NO_THROW(save_model(model, folder / "a.h5"));
}

// Loads a model, or returns the message if loading throws an error of this library.
void load_damaged(const std::string& path, const std::string& bytes) {
  write_bytes(path, bytes);
  try {
    load_model(path);
  } catch (const Error&) {  // anything else fails the test
  }
}

TEST(SavedModelTest, ATruncatedFileIsAlwaysAnError) {
  const TemporaryFolder folder;
  save_model(small_model(), folder / "a.h5");
  const std::string bytes = read_bytes(folder / "a.h5");
  for (size_t length = 0; length < bytes.size(); length += 97) {
    write_bytes(folder / "b.h5", bytes.substr(0, length));
    EXPECT_THROW(load_model(folder / "b.h5"), IoError) << length;
  }
  for (size_t cut = 1; cut < 40; ++cut) {
    write_bytes(folder / "b.h5", bytes.substr(0, bytes.size() - cut));
    EXPECT_THROW(load_model(folder / "b.h5"), IoError) << cut;
  }
}

TEST(SavedModelTest, ADamagedFileLoadsOrThrowsError) {
  const TemporaryFolder folder;
  save_model(small_model(), folder / "a.h5");
  const std::string bytes = read_bytes(folder / "a.h5");
  for (uint64_t i = 0; i < 300; ++i) {
    std::vector<int64_t> draws(3);
    RandomStream{17, i}.uniform_int(draws, 0, static_cast<int64_t>(bytes.size()) * 256);
    std::string damaged = bytes;
    for (int64_t draw : draws) damaged[draw / 256] = static_cast<char>(draw % 256);
    load_damaged(folder / "b.h5", damaged);
  }
}

TEST(SavedModelTest, ChangedHeaderBytesAreSafe) {
  const TemporaryFolder folder;
  save_model(small_model(), folder / "a.h5");
  const std::string bytes = read_bytes(folder / "a.h5");
  for (size_t i = 0; i < std::min<size_t>(bytes.size(), 2600); i += 7) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xFF);
    load_damaged(folder / "b.h5", damaged);
  }
}

Functional embedding_model() {
  const Table users = make_table({.vocabulary_size = 6, .dim = 2, .name = "users"});
  const Table items =
      make_table({.vocabulary_size = 9, .dim = 3, .combiner = "sum", .name = "items"});
  const Nest<FeatureConfig> features = {{"user", FeatureConfig{.table = users}},
                                        {"seen", FeatureConfig{.table = items}}};
  const Tensor user = layers::input({.dtype = DType::kInt64, .name = "user"});
  const RaggedTensor seen = layers::ragged_input({.dtype = DType::kInt64, .name = "seen"});
  const layers::TPUEmbedding embedding(
      {.feature_config = features, .optimizer = tpu::Adagrad{}, .name = "embedding"});
  const Tensors inputs = {{"user", user}, {"seen", seen}};
  const Tensors found = embedding(inputs);
  const Tensor x =
      layers::Concatenate({.name = "both"})(Tensors::list({found["user"], found["seen"]})).tensor();
  const Tensor y = Dense({.units = 1, .name = "out"})(x);
  return Functional({.inputs = inputs, .outputs = y, .name = "ranker"});
}

Tensors embedding_inputs() {
  return {{"user", Tensor::from<int64_t>({5, 0}, {2})},
          {"seen", RaggedTensor::from_rows<int64_t>({{8, 1, 1}, {}})}};
}

TEST(SavedModelTest, TablesOfAnEngineAreWholeInTheFileAndPredictTheSameOnTheHost) {
  const TemporaryFolder folder;
  std::vector<float> on_cores;
  {
    TPUStrategy strategy({.num_cores = 2});
    const auto scope = strategy.scope();
    const Functional model = embedding_model();
    on_cores = values_of(strategy.run([&] { return model(embedding_inputs()).tensor(); })[0]);
    save_model(model, folder / "a.h5");
  }
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.spec("model_weights/embedding/embedding/users:0").shape, Shape({6, 2}));
  EXPECT_EQ(file.spec("model_weights/embedding/embedding/items:0").shape, Shape({9, 3}));
  EXPECT_EQ(values_of(load_model(folder / "a.h5")(embedding_inputs())), on_cores);
}

TEST(SavedModelTest, TablesOfTheHostPredictTheSameOnCores) {
  const TemporaryFolder folder;
  const Functional model = embedding_model();
  save_model(model, folder / "a.h5");
  const std::vector<float> expected = values_of(model(embedding_inputs()));
  TPUStrategy strategy({.num_cores = 2});
  const auto scope = strategy.scope();
  const ModelHandle same = load_model(folder / "a.h5");
  const auto out = strategy.run([&] { return same(embedding_inputs()).tensor(); });
  EXPECT_EQ(values_of(out[1]), expected);
}

}  // namespace keel::saved_model_test
