// Tests savedmodel/keras/internal/keras_model_config.cc and keras_vocabularies.cc.
#include <keel/savedmodel/keras/internal/keras_archive.h>

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/lambda.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/losses/loss.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/preprocessing/text_vectorization.h>
#include <keel/layers/registry.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/files.h"
#include "tests/support/keras_archives.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::keras_archive_test {

using layers::Dense;
using testing::HasSubstr;
using testing_support::config_in;
using testing_support::message_of;
using testing_support::read_bytes;
using testing_support::TemporaryFolder;
using testing_support::values_of;
using testing_support::write_bytes;
using Input = LayerHandle<InputLayer>;
constexpr int64_t kLimit = 1 << 20;

Tensor batch() { return Tensor::from<float>({1, -2, 3, 4, 5, -6}, {2, 3}); }

Sequential mlp() {
  return Sequential(
      {.layers =
           {Input({.batch_shape = {kUnknown, 3}, .name = "in"}),
            Dense({.units = 4, .activation = "relu", .kernel_regularizer = "l2", .name = "one"}),
            Dense({.units = 2, .name = "two"})},
       .name = "mlp"});
}

Functional graph() {
  const Tensor x = layers::input({.shape = {3}, .name = "x"});
  return Functional({.inputs = x, .outputs = Dense({.units = 1, .name = "d"})(x), .name = "g"});
}

// Rewrites the archive at `path` with this config.
void replace_config(const std::string& path, const std::string& config) {
  const ZipFile zip(path);
  zip.extract("model.weights.h5", path + ".weights");
  const std::string to = path + ".new";
  ZipWriter out(to);
  out.add("config.json", config);
  out.add_file("model.weights.h5", path + ".weights");
  out.finish();
  std::filesystem::rename(to, path);
}

TEST(KerasArchiveTest, LoadedModelsPredictTheSameBits) {
  const TemporaryFolder folder;
  write_keras_archive(*mlp(), folder / "a.keras");
  const Sequential model = mlp();
  write_keras_archive(*model, folder / "a.keras");
  const ModelHandle same = read_keras_archive(folder / "a.keras");
  EXPECT_EQ(same->class_name(), "Sequential");
  EXPECT_EQ(values_of(same(Tensors(batch()))), values_of(model(Tensors(batch()))));
}

TEST(KerasArchiveTest, EqualModelsMakeEqualBytesAndNoTemporaryFiles) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  save_model(model, folder / "a.keras");
  save_model(load_model(folder / "a.keras"), folder / "b.keras");
  EXPECT_EQ(read_bytes(folder / "a.keras"), read_bytes(folder / "b.keras"));
  int files = 0;
  for ([[maybe_unused]] const auto& _ : std::filesystem::directory_iterator(folder.path())) ++files;
  EXPECT_EQ(files, 2);
}

TEST(KerasArchiveTest, ObjectsHaveTheModulesOfKeras3) {
  const TemporaryFolder folder;
  save_model(mlp(), folder / "a.keras");
  const Config sequential = config_in(folder / "a.keras");
  EXPECT_EQ(sequential["module"].string(), "keras");
  EXPECT_EQ(sequential["class_name"].string(), "Sequential");
  EXPECT_TRUE(sequential["registered_name"].is_null());
  const Config& layers = sequential["config"]["layers"];
  EXPECT_EQ(to_json(layers.items()[0]["config"]["batch_shape"]), "[null, 3]");
  const Config& dense = layers.items()[1];
  EXPECT_EQ(dense["module"].string(), "keras.layers");
  EXPECT_EQ(dense["config"]["kernel_initializer"]["module"].string(), "keras.initializers");
  EXPECT_EQ(dense["config"]["kernel_regularizer"]["module"].string(), "keras.regularizers");
  EXPECT_EQ(sequential.find("compile_config"), nullptr);

  save_model(graph(), folder / "b.keras");
  const Config functional = config_in(folder / "b.keras");
  EXPECT_EQ(functional["module"].string(), "keras.src.models.functional");
  EXPECT_EQ(functional["registered_name"].string(), "Functional");
  EXPECT_EQ(to_json(functional["config"]["output_layers"]), R"(["d", 0, 0])");
}

TEST(KerasArchiveTest, TrainingContinuesWithTheSameBits) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  model->compile(
      {.optimizer = optimizers::Adam({.learning_rate = 0.05}), .loss = "mse", .metrics = {"mae"}});
  const Tensors labels(Tensor::zeros({2, 2}));
  for (int i = 0; i < 3; ++i) model->train_on_batch(Tensors(batch()), labels);
  save_model(model, folder / "a.keras");
  const Config compiled = config_in(folder / "a.keras")["compile_config"];
  EXPECT_EQ(compiled["optimizer"]["module"].string(), "keras.optimizers");
  const ModelHandle same = load_model(folder / "a.keras");
  EXPECT_EQ(same->optimizer()->iterations(), 3);
  model->reset_metrics();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(same->train_on_batch(Tensors(batch()), labels),
              model->train_on_batch(Tensors(batch()), labels));
  }
  EXPECT_FALSE(load_model(folder / "a.keras", {.compile = false})->compiled());
}

// Keras cannot import the module keel.losses and says so. In keras.losses it would look for a class
// that it does not have.
TEST(KerasArchiveTest, ALossOfKeelNamesItsPackageAndIsLoadedAgain) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  const Config loss = parse_json(
      R"({"class_name": "AutoCrossentropy", "config": {"name": "mine", "reduction": "sum"}})");
  model->compile({.optimizer = "sgd", .loss = losses::deserialize(loss)});
  save_model(model, folder / "a.keras");
  EXPECT_EQ(to_json(config_in(folder / "a.keras")["compile_config"]["loss"]),
            R"({"module": "keel.losses", "class_name": "AutoCrossentropy", )"
            R"("config": {"name": "mine", "reduction": "sum"}, )"
            R"("registered_name": "keel>AutoCrossentropy"})");
  save_model(model, folder / "a.h5");
  for (const char* file : {"a.keras", "a.h5"}) {
    const ModelHandle same = load_model(folder / file);
    EXPECT_EQ(to_json(same->get_compile_config()["loss"]), to_json(loss)) << file;
  }
}

struct DoubleOptions {
  std::string name = {};
  bool trainable = true;
  DType dtype = DType::kFloat32;
  static constexpr void fields(auto& self, auto&& field) { base_fields(self, field); }
};

class DoubleLayer final : public TensorLayer {
 public:
  static constexpr char kClassName[] = "KerasArchiveTest>Double";
  using Options = DoubleOptions;
  explicit DoubleLayer(Options options)
      : TensorLayer(kClassName, options), options_(std::move(options)) {}
  Config get_config() const override { return to_config(options_); }

 private:
  Tensor call(const Tensor& x, const CallContext&) override { return x + x; }
  const Options options_;
};

TEST(KerasArchiveTest, UserClassesAreSavedUnderTheirRegisteredNames) {
  const TemporaryFolder folder;
  const Sequential model({.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}),
                                     LayerHandle<DoubleLayer>({.name = "double"})},
                          .name = "own"});
  save_model(model, folder / "a.keras");
  const Config config = config_in(folder / "a.keras");
  const Config& layer = config["config"]["layers"].items()[1];
  EXPECT_EQ(layer["class_name"].string(), "Double");
  EXPECT_EQ(layer["registered_name"].string(), "KerasArchiveTest>Double");
  EXPECT_THROW(load_model(folder / "a.keras"), ValueError);
  layer_registry().add<DoubleLayer>();
  EXPECT_EQ(values_of(load_model(folder / "a.keras")(Tensors(batch()))),
            values_of(model(Tensors(batch()))));
}

std::string with_activation(const std::string& path, const std::string& activation) {
  std::string text = to_json(config_in(path));
  const std::string from = R"("activation": "relu")";
  return text.replace(text.find(from), from.size(), R"("activation": )" + activation);
}

TEST(KerasArchiveTest, FunctionsAreReadByName) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  save_model(model, folder / "a.keras");
  replace_config(folder / "a.keras",
                 with_activation(folder / "a.keras",
                                 R"({"module": "builtins", "class_name": "function",
                                     "config": "relu", "registered_name": "function"})"));
  EXPECT_EQ(values_of(load_model(folder / "a.keras")(Tensors(batch()))),
            values_of(model(Tensors(batch()))));
}

TEST(KerasArchiveTest, LambdasAreRejected) {
  const TemporaryFolder folder;
  save_model(mlp(), folder / "a.keras");
  replace_config(folder / "a.keras",
                 with_activation(folder / "a.keras", R"({"class_name": "__lambda__",
                                                         "config": {"value": "4wEA"}})"));
  const std::string message = message_of<ValueError>([&] { load_model(folder / "a.keras"); });
  EXPECT_THAT(message, HasSubstr("lambda"));
  EXPECT_THROW(load_model(folder / "a.keras", {.safe_mode = false}), NotImplementedError);
}

// Python code is never run; a function that is registered under the name of the layer replaces it.
TEST(KerasArchiveTest, CodeOfALambdaLayerIsReplacedByARegisteredFunction) {
  const TemporaryFolder folder;
  layers::register_lambda_function(
      "keras_archive_test_named",
      [](const Tensors& x, const LambdaCall&) { return Tensors(ops::negative(x.tensor())); });
  const Sequential model(
      {.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}),
                  layers::Lambda({.function = "keras_archive_test_named", .name = "minus"})}});
  save_model(model, folder / "a.keras");
  EXPECT_EQ(values_of(load_model(folder / "a.keras")(Tensors(batch()))),
            values_of(model(Tensors(batch()))));
  std::string text = to_json(config_in(folder / "a.keras"));
  const std::string from = R"({"module": "builtins", "class_name": "function", )"
                           R"("config": "keras_archive_test_named", )"
                           R"("registered_name": "function"})";
  ASSERT_NE(text.find(from), std::string::npos) << text;
  text.replace(text.find(from), from.size(),
               R"({"class_name": "__lambda__",
                   "config": {"code": "4wEA", "defaults": null, "closure": null}})");
  replace_config(folder / "a.keras", text);
  const std::string message =
      message_of<NotImplementedError>([&] { load_model(folder / "a.keras"); });
  EXPECT_THAT(message, HasSubstr("Lambda minus"));
  EXPECT_THAT(message, HasSubstr(R"(register_lambda_function("minus", ...))"));
  layers::register_lambda_function("minus", [](const Tensors& x, const LambdaCall&) {
    return Tensors(ops::negative(x.tensor()));
  });
  EXPECT_EQ(values_of(load_model(folder / "a.keras")(Tensors(batch()))),
            values_of(model(Tensors(batch()))));
}

TEST(KerasArchiveTest, MissingOrDamagedPartsAreErrorsThatNameTheFile) {
  const TemporaryFolder folder;
  const auto message = [&](const std::string& name) {
    return message_of<Error>([&] { load_model(folder / name); });
  };
  write_bytes(folder / "text.keras", "text");
  {
    ZipWriter zip(folder / "empty.keras");
    zip.add("metadata.json", "{}");
    zip.finish();
  }
  {
    ZipWriter zip(folder / "config.keras");
    zip.add("config.json",
            to_json(parse_json(R"({"class_name": "Dense", "config": {"units": 1}})")));
    zip.finish();
  }
  save_model(mlp(), folder / "weights.keras");
  {
    ZipWriter zip(folder / "no_weights.keras");
    zip.add("config.json", to_json(config_in(folder / "weights.keras")));
    zip.add("model.weights.h5", "not HDF5");
    zip.finish();
  }
  for (const char* name :
       {"none.keras", "text.keras", "empty.keras", "config.keras", "no_weights.keras"}) {
    EXPECT_THAT(message(name), HasSubstr(folder / name));
  }
}

// ---- Vocabularies next to the config, where Keras writes those that a layer learned.

// Rewrites the archive at `path` without the vocabularies in its config but with these files.
void move_vocabularies(const std::string& path, const std::map<std::string, std::string>& files) {
  Config config = config_in(path);
  Config inner = config["config"];
  Config::List layers;
  for (Config layer : inner["layers"].items()) {
    Config values = layer["config"];
    for (const char* key : {"vocabulary", "idf_weights"}) {
      if (values.find(key) != nullptr) values.set(key, {});
    }
    layer.set("config", std::move(values));
    layers.push_back(std::move(layer));
  }
  inner.set("layers", std::move(layers));
  config.set("config", std::move(inner));
  ZipFile(path).extract("model.weights.h5", path + ".weights");
  ZipWriter out(path);
  out.add("metadata.json", "{}");
  out.add("config.json", to_json(config));
  out.add_file("model.weights.h5", path + ".weights");
  for (const auto& [entry, text] : files) out.add(entry, text);
  out.finish();
}

Functional lookups() {
  const Tensor s = layers::input({.shape = {2}, .dtype = DType::kString, .name = "s"});
  const Tensor i = layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "i"});
  const layers::StringLookup words({.mask_token = "", .vocabulary = {{"b", "a"}}, .name = "words"});
  const layers::StringLookup weighed({.vocabulary = {{"b", "a"}},
                                      .output_mode = "tf_idf",
                                      .idf_weights = {{0.25, 0.5}},
                                      .name = "weighed"});
  const layers::IntegerLookup numbers(
      {.vocabulary = {{7, -3}}, .output_mode = "count", .name = "numbers"});
  const layers::TextVectorization text({.split = {}, .vocabulary = {{"b", "a"}}, .name = "text"});
  const layers::TextVectorization tf_idf({.split = {},
                                          .output_mode = "tf_idf",
                                          .vocabulary = {{"b", "a"}},
                                          .idf_weights = {{0.5, 0.75}},
                                          .name = "tf_idf"});
  return Functional(
      {.inputs = Tensors::list({s, i}),
       .outputs = Tensors::list({words(s), weighed(s), numbers(i), text(s), tf_idf(s)}),
       .name = "lookups"});
}

const std::map<std::string, std::string> kVocabularies = {
    {"assets/layers/string_lookup/vocabulary.txt", "\n[UNK]\nb\na"},
    {"assets/layers/string_lookup_1/vocabulary.txt", "[UNK]\nb\na"},
    {"assets/layers/text_vectorization/vocabulary.txt", "\n[UNK]\nb\na"},
    {"assets/layers/text_vectorization_1/vocabulary.txt", "[UNK]\nb\na"},
    {"assets/layers/integer_lookup/vocabulary.txt", "-1\n7\n-3\n"}};

std::vector<std::vector<float>> numbers_of(const Model& model) {
  const Tensors batch = Tensors::list({Tensor::from<std::string>({"a", "", "c", "b"}, {2, 2}),
                                       Tensor::from<int64_t>({7, -3, 8, 7}, {2, 2})});
  std::vector<std::vector<float>> out;
  for (const TensorLike& t : flatten(const_cast<Model&>(model)(batch))) {
    out.push_back(t.tensor().cast(DType::kFloat32).to_vector<float>());
  }
  return out;
}

TEST(KerasArchiveTest, VocabulariesBesideTheConfigAreRead) {
  const TemporaryFolder folder;
  const Functional model = lookups();
  save_model(model, folder / "a.keras");
  const auto expected = numbers_of(*model);
  EXPECT_EQ(expected[0], (std::vector<float>{3, 0, 1, 2}));
  EXPECT_EQ(expected[3], (std::vector<float>{3, 0, 1, 2}));
  EXPECT_EQ(expected[4], (std::vector<float>{0, 0, 0.75, 0.625, 0.5, 0}));
  move_vocabularies(folder / "a.keras", kVocabularies);
  const ModelHandle read = load_model(folder / "a.keras");
  EXPECT_EQ(numbers_of(*read), expected);
  // After that, the vocabularies are in the config.
  save_model(read, folder / "b.keras");
  EXPECT_EQ(numbers_of(*load_model(folder / "b.keras")), expected);
}

TEST(KerasArchiveTest, ANonIntegerWordIsAnErrorThatNamesTheFile) {
  const TemporaryFolder folder;
  save_model(lookups(), folder / "a.keras");
  auto files = kVocabularies;
  files["assets/layers/integer_lookup/vocabulary.txt"] = "-1\nseven";
  move_vocabularies(folder / "a.keras", files);
  const std::string message = message_of<IoError>([&] { load_model(folder / "a.keras"); });
  EXPECT_THAT(message, HasSubstr("integer_lookup/vocabulary.txt"));
  EXPECT_THAT(message, HasSubstr("seven"));
}

TEST(KerasArchiveTest, WordFrequenciesAreSavedAsWeights) {
  const TemporaryFolder folder;
  const Functional model = lookups();
  save_weights(model, folder / "a.weights.h5");
  const Hdf5File file(folder / "a.weights.h5");
  EXPECT_EQ(file.read("layers/string_lookup_1/vars/idf_weights").to_vector<float>(),
            (std::vector<float>{0.375, 0.25, 0.5}));
  EXPECT_TRUE(file.children("layers/string_lookup/vars").empty());
  EXPECT_EQ(
      file.read("layers/text_vectorization_1/_lookup_layer/vars/idf_weights").to_vector<float>(),
      (std::vector<float>{0.625, 0.5, 0.75}));
  load_weights(model, folder / "a.weights.h5");
}

TEST(KerasArchiveTest, AConfigCannotAllocateMoreThanItsWeights) {
  const TemporaryFolder folder;
  save_model(mlp(), folder / "a.keras");
  std::string text = to_json(config_in(folder / "a.keras"));
  const std::string units = R"("units": 4)";
  text.replace(text.find(units), units.size(), R"("units": 400000000)");
  replace_config(folder / "a.keras", text);
  const std::string message = message_of<ValueError>([&] { load_model(folder / "a.keras"); });
  EXPECT_THAT(message, HasSubstr("more bytes are allowed"));
}

TEST(KerasArchiveTest, DamagedArchivesLoadOrThrowError) {
  const TemporaryFolder folder;
  save_model(mlp(), folder / "a.keras");
  const std::string bytes = read_bytes(folder / "a.keras");
  for (size_t i = 0; i < bytes.size(); i += 211) {
    std::string damaged = bytes;
    damaged[i] = static_cast<char>(damaged[i] ^ 0xFF);
    write_bytes(folder / "b.keras", damaged);
    try {
      load_model(folder / "b.keras");
    } catch (const Error&) {  // anything else fails the test
    }
  }
}

// Stored next to the optimizer's config, where Keras's readers ignore it.
TEST(KerasArchiveTest, LazyRowsRoundTrip) {
  const TemporaryFolder folder;
  for (const LazyRows lazy : {LazyRows::kOff, LazyRows::kReplay, LazyRows::kClosedForm}) {
    const Sequential model(
        {.layers = {Input({.batch_shape = {kUnknown, 3}}), Dense({.units = 2})}});
    model->compile({.optimizer = optimizers::Adam({.lazy_rows = lazy}), .loss = "mse"});
    for (const char* file : {"a.keras", "a.h5"}) {
      save_model(model, folder / file);
      const Config config = load_model(folder / file)->optimizer()->get_config();
      EXPECT_EQ(config, model->optimizer()->get_config()) << file;
      const Config* const found = config.find("lazy_rows");
      EXPECT_EQ(found != nullptr ? *found : encode(LazyRows::kOff), encode(lazy)) << file;
    }
  }
  const Config optimizer = config_in(folder / "a.keras")["compile_config"]["optimizer"];
  EXPECT_EQ(optimizer["config"].find("lazy_rows"), nullptr);
}

TEST(KerasArchiveTest, MixedBFloat16RoundTripsAsInKeras) {
  const TemporaryFolder folder;
  const Sequential model(
      {.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}),
                  Dense(
                      {.units = 4, .activation = "relu", .name = "one", .dtype = "mixed_bfloat16"}),
                  Dense({.units = 2, .name = "two"})},
       .name = "mixed"});
  for (const char* file : {"a.keras", "a.h5"}) {
    save_model(model, folder / file);
    const ModelHandle same = load_model(folder / file, {.compile = false});
    const auto layers = same->layers();
    EXPECT_EQ(layers.end()[-2]->dtype_policy().name(), "mixed_bfloat16") << file;
    EXPECT_EQ(layers.end()[-1]->dtype_policy().name(), "float32") << file;
    EXPECT_EQ(values_of(same(Tensors(batch()))), values_of(model(Tensors(batch())))) << file;
  }
  const Config layer = config_in(folder / "a.keras")["config"]["layers"].items()[1];
  EXPECT_EQ(layer["config"]["dtype"]["class_name"], Config("DTypePolicy"));
  EXPECT_EQ(layer["config"]["dtype"]["config"]["name"], Config("mixed_bfloat16"));
}

}  // namespace keel::keras_archive_test
