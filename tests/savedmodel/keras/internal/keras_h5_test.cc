// Tests savedmodel/keras/internal/keras_weight_groups.cc, legacy_weights.cc and model_weights.cc.
#include <keel/savedmodel/keras/internal/keras_h5.h>

#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/random.h>
#include <keel/layers/attention/attention.h>
#include <keel/layers/attention/grouped_query_attention.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/wrappers/wrappers.h>
#include <keel/losses.h>
#include <keel/metrics.h>
#include <keel/optimizers/adam.h>
#include <keel/optimizers/sgd.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/keras_compile.h>
#include <keel/savedmodel/keras/internal/keras_model_config.h>
#include <keel/savedmodel/keras/internal/model_weights.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/savedmodel/keras/legacy_file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::keras_h5_test {

using layers::BatchNormalization;
using layers::Concatenate;
using layers::Dense;
using testing::HasSubstr;
using testing_support::message_of;
using testing_support::normal;
using testing_support::TemporaryFolder;
using testing_support::values_of;
using Input = LayerHandle<InputLayer>;
using Names = std::vector<std::string>;

// Sets values that no initializer produces; variances are positive.
void randomize(const Model& model) {
  uint64_t seed = 100;
  for (const Variable& v : model.weights()) {
    Tensor value = normal(v.shape(), seed++);
    for (float& x : value.mutable_data<float>()) x = std::abs(x) + 0.1f;
    v.assign(value);
  }
}

Functional ranker() {
  const Tensor id = layers::input({.shape = {2}, .dtype = DType::kInt32, .name = "id"});
  const Tensor x = layers::input({.shape = {3}, .name = "x"});
  const Tensor embedded = layers::Embedding({.input_dim = 7, .output_dim = 4, .name = "table"})(id);
  Tensor h =
      Concatenate({.name = "both"})(Tensors::list({layers::Flatten({.name = "flat"})(embedded), x}))
          .tensor();
  h = BatchNormalization({.name = "norm"})(Dense({.units = 5, .name = "hidden"})(h));
  h = layers::Dropout({.rate = 0.5, .name = "drop"})(h);
  const Tensor y = Dense({.units = 1, .activation = "sigmoid", .name = "out"})(h);
  Functional model({.inputs = {{"id", id}, {"x", x}}, .outputs = y, .name = "ranker"});
  randomize(*model);
  return model;
}

Tensors ranker_inputs() {
  return {{"id", Tensor::from<int32_t>({0, 6, 3, 2, 1, 1}, {3, 2})}, {"x", normal({3, 3}, 7)}};
}

Sequential mlp(const std::string& name = "mlp") {
  Sequential model({.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}),
                               Dense({.units = 4, .activation = "relu", .name = "one"}),
                               Dense({.units = 2, .name = "two"})},
                    .name = name});
  randomize(*model);
  return model;
}

TEST(KerasH5Test, ALoadedFunctionalModelPredictsTheSameBits) {
  const TemporaryFolder folder;
  const Functional model = ranker();
  write_keras_h5(*model, folder / "a.h5");
  const ModelHandle same = read_keras_h5(folder / "a.h5");
  EXPECT_EQ(same->class_name(), "Functional");
  EXPECT_EQ(same->name(), "ranker");
  EXPECT_EQ(values_of(same(ranker_inputs())), values_of(model(ranker_inputs())));
}

TEST(KerasH5Test, ALoadedSequentialModelPredictsTheSameBits) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  write_keras_h5(*model, folder / "a.h5");
  const ModelHandle same = read_keras_h5(folder / "a.h5");
  EXPECT_EQ(same->class_name(), "Sequential");
  EXPECT_EQ(values_of(same(Tensors(normal({5, 3}, 1)))),
            values_of(model(Tensors(normal({5, 3}, 1)))));
}

TEST(KerasH5Test, TheLayoutMatchesKeras) {
  const TemporaryFolder folder;
  write_keras_h5(*ranker(), folder / "a.h5");
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.string_attribute("/", "keras_version"), "3.8.0");
  EXPECT_EQ(file.string_attribute("/", "backend"), "tensorflow");
  EXPECT_EQ(file.string_attribute("model_weights", "keras_version"), "3.8.0");
  EXPECT_EQ(file.string_attribute("model_weights", "backend"), "tensorflow");
  EXPECT_FALSE(file.has_attribute("/", "training_config"));
  EXPECT_FALSE(file.has("optimizer_weights"));
  EXPECT_EQ(file.string_list("model_weights", "layer_names"),
            (Names{"id", "table", "flat", "x", "both", "hidden", "norm", "drop", "out"}));
  EXPECT_EQ(file.string_list("model_weights/norm", "weight_names"),
            (Names{"norm/gamma:0", "norm/beta:0", "norm/moving_mean:0", "norm/moving_variance:0"}));
  EXPECT_TRUE(file.has_attribute("model_weights/drop", "weight_names"));
  EXPECT_TRUE(file.string_list("model_weights/drop", "weight_names").empty());
  EXPECT_TRUE(file.has("model_weights/top_level_model_weights"));
  EXPECT_EQ(file.spec("model_weights/hidden/hidden/kernel:0"),
            (TensorSpec{.shape = {11, 5}, .dtype = DType::kFloat32}));
  const Config config = parse_json(file.string_attribute("/", "model_config"));
  EXPECT_EQ(config["class_name"].string(), "Functional");
}

// Inner layers with the same names in two nested models, one with a frozen layer.
Functional nested(bool frozen) {
  const Tensor x = layers::input({.shape = {3}, .name = "x"});
  const auto tower = [](const std::string& name) {
    return Sequential(
        {.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}),
                    Dense({.units = 3, .name = "first"}), BatchNormalization({.name = "norm"}),
                    Dense({.units = 3, .name = "second"})},
         .name = name});
  };
  const Sequential a = tower("a");
  const Sequential b = tower("b");
  if (frozen) a->get_layer("first")->set_trainable(false);
  const Tensor y = Concatenate({.name = "both"})(Tensors::list({a(x), b(x)})).tensor();
  Functional model({.inputs = x, .outputs = y, .name = "nested"});
  return model;
}

TEST(KerasH5Test, NestedModelWeightsAreGroupedTrainableFirst) {
  const TemporaryFolder folder;
  write_keras_h5(*nested(true), folder / "a.h5");
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.string_list("model_weights", "layer_names"), (Names{"x", "a", "b", "both"}));
  EXPECT_EQ(
      file.string_list("model_weights/a", "weight_names"),
      (Names{"norm/gamma:0", "norm/beta:0", "second/kernel:0", "second/bias:0", "first/kernel:0",
             "first/bias:0", "norm/moving_mean:0", "norm/moving_variance:0"}));
}

TEST(KerasH5Test, NestedModelsKeepTheirWeightsWhetherFrozenOrNot) {
  const TemporaryFolder folder;
  for (const bool frozen : {false, true}) {
    const Functional model = nested(frozen);
    randomize(*model);
    write_keras_h5(*model, folder / "a.h5");
    const ModelHandle same = read_keras_h5(folder / "a.h5");
    EXPECT_EQ(values_of(same(Tensors(normal({4, 3}, 2)))),
              values_of(model(Tensors(normal({4, 3}, 2)))));
    EXPECT_EQ(same->trainable_variables().size(), model->trainable_variables().size());
  }
}

TEST(KerasH5Test, ASharedLayerIsStoredOnceAndSharedAgain) {
  const TemporaryFolder folder;
  const Tensor a = layers::input({.shape = {3}, .name = "a"});
  const Tensor b = layers::input({.shape = {3}, .name = "b"});
  const Dense dense({.units = 2, .name = "shared"});
  Tensors::Items both = {dense(a), dense(b)};
  Functional model({.inputs = Tensors::list({a, b}),
                    .outputs = Concatenate({.name = "both"})(Tensors::list(both))});
  write_keras_h5(*model, folder / "a.h5");
  const ModelHandle same = read_keras_h5(folder / "a.h5");
  EXPECT_EQ(same->weights().size(), 2U);
  const Tensors x = Tensors::list({normal({2, 3}, 1), normal({2, 3}, 2)});
  EXPECT_EQ(values_of(same(x)), values_of(model(x)));
}

// Writes a file as another program could have written it.
struct FileLayer {
  std::string name;
  std::vector<std::pair<std::string, Tensor>> weights;
};

void write_file(const std::string& path, const Config& model_config,
                const std::vector<FileLayer>& layers) {
  Hdf5Writer file(path);
  file.write_attribute("/", "model_config", to_json(model_config));
  Names layer_names;
  for (const FileLayer& layer : layers) {
    layer_names.push_back(layer.name);
    const std::string group = "/model_weights/" + layer.name;
    file.create_group(group);
    Names names;
    for (const auto& [name, value] : layer.weights) {
      file.write(str(group, "/", name), value);
      names.push_back(name);
    }
    file.write_string_list(group, "weight_names", names);
  }
  file.create_group("/model_weights");
  file.write_string_list("/model_weights", "layer_names", layer_names);
  file.commit();
}

Config config_of(const Model& model) {
  return Config::dict({{"class_name", model.class_name()}, {"config", model.get_config()}});
}

std::vector<FileLayer> weights_of_mlp() {
  return {{"one", {{"k", normal({3, 4}, 1)}, {"b", normal({4}, 2)}}},
          {"two", {{"k", normal({4, 2}, 3)}, {"b", normal({2}, 4)}}}};
}

TEST(KerasH5Test, WeightNamesAreIgnoredAndDoublesAreRead) {
  const TemporaryFolder folder;
  std::vector<FileLayer> layers = weights_of_mlp();
  layers.insert(layers.begin() + 1, {"flatten", {}});
  layers[0].name = "other";
  layers[0].weights[0].second = layers[0].weights[0].second.cast(DType::kFloat64);
  write_file(folder / "a.h5", config_of(*mlp()), layers);
  const ModelHandle model = read_keras_h5(folder / "a.h5");
  const std::vector<Variable> weights = model->weights();
  EXPECT_EQ(weights[0].read().to_vector<float>(), values_of(normal({3, 4}, 1)));
  EXPECT_EQ(weights[3].read().to_vector<float>(), values_of(normal({2}, 4)));
}

TEST(KerasH5Test, ASequentialWithoutInputLayerIsBuiltForTheShapeItNames) {
  const TemporaryFolder folder;
  const Sequential same(
      {.layers = {Dense({.units = 4, .name = "one"}), Dense({.units = 2, .name = "two"})}});
  Config config = config_of(*same);
  Config inner = config["config"];
  inner.set("build_input_shape", Config::list({Config(), 3}));
  config.set("config", inner);
  write_file(folder / "a.h5", config, weights_of_mlp());
  EXPECT_EQ(read_keras_h5(folder / "a.h5")->weights().size(), 4U);
}

std::string refusal(const TemporaryFolder& folder, const std::vector<FileLayer>& layers) {
  write_file(folder / "a.h5", config_of(*mlp()), layers);
  return message_of<ValueError>([&] { read_keras_h5(folder / "a.h5"); });
}

TEST(KerasH5Test, AWrongShapeIsAnErrorThatNamesLayerAndWeight) {
  const TemporaryFolder folder;
  std::vector<FileLayer> layers = weights_of_mlp();
  layers[1].weights[0].second = normal({2, 4}, 1);
  const std::string message = refusal(folder, layers);
  for (const char* part : {"a.h5", "'two'", "kernel", "(4, 2)", "(2, 4)"}) {
    EXPECT_THAT(message, HasSubstr(part));
  }
}

TEST(KerasH5Test, AMissingOrAnExtraWeightIsAnError) {
  const TemporaryFolder folder;
  std::vector<FileLayer> layers = weights_of_mlp();
  layers[1].weights.pop_back();
  const std::string message = refusal(folder, layers);
  EXPECT_THAT(message, HasSubstr("'two' requires 2 weights"));
  layers = weights_of_mlp();
  layers[1].weights.emplace_back("more", normal({1}, 1));
  EXPECT_THAT(refusal(folder, layers), HasSubstr("3 under 'two'"));
}

TEST(KerasH5Test, AMissingOrAnExtraLayerIsAnError) {
  const TemporaryFolder folder;
  std::vector<FileLayer> layers = weights_of_mlp();
  layers.pop_back();
  EXPECT_THAT(refusal(folder, layers), HasSubstr("the file has 1 (one)"));
  layers = weights_of_mlp();
  layers.push_back({"three", {{"k", normal({1}, 1)}}});
  EXPECT_THAT(refusal(folder, layers), HasSubstr("the file has 3 (one, two, three)"));
}

TEST(KerasH5Test, AMissingNamedWeightIsAnError) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.h5");
    file.write_attribute("/", "model_config", to_json(config_of(*mlp())));
    file.create_group("/model_weights/one");
    file.create_group("/model_weights/two");
    file.write_string_list("/model_weights", "layer_names", {"one", "two"});
    file.write_string_list("/model_weights/one", "weight_names", {"k", "b"});
    file.write_string_list("/model_weights/two", "weight_names", {"k", "b"});
    file.commit();
  }
  const std::string message = message_of<IoError>([&] { read_keras_h5(folder / "a.h5"); });
  EXPECT_THAT(message, HasSubstr("/model_weights/one/k"));
}

TEST(KerasH5Test, AnInvalidConfigIsAnErrorThatNamesTheFile) {
  const TemporaryFolder folder;
  const Config dense = Config::dict(
      {{"class_name", "Dense"}, {"config", Config::dict({{"name", "d"}, {"units", 2}})}});
  const Config unknown = Config::dict({{"class_name", "NoSuchModel"}, {"config", Config::dict()}});
  for (const Config& config : {dense, unknown, Config("text"), Config::dict()}) {
    write_file(folder / "a.h5", config, {});
    EXPECT_THAT(message_of<Error>([&] { read_keras_h5(folder / "a.h5"); }),
                HasSubstr(folder / "a.h5"));
  }
}

TEST(KerasH5Test, AFileWithoutAModelIsAnError) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "weights.h5");
    file.write_string_list("/", "layer_names", {});
    file.commit();
  }
  EXPECT_THROW(read_keras_h5(folder / "weights.h5"), IoError);
  {
    Hdf5Writer file(folder / "config.h5");
    file.write_attribute("/", "model_config", to_json(config_of(*mlp())));
    file.commit();
  }
  EXPECT_THROW(read_keras_h5(folder / "config.h5"), IoError);
}

TEST(KerasH5Test, AModelWithoutWeightsYetIsAnErrorAndMakesNoFile) {
  const TemporaryFolder folder;
  const Sequential model({.layers = {Dense({.units = 2})}});
  EXPECT_THROW(write_keras_h5(*model, folder / "a.h5"), RuntimeError);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
  model(Tensors(normal({1, 3}, 1)));
  EXPECT_NO_THROW(write_keras_h5(*model, folder / "a.h5"));
}

class Own final : public Model {
 public:
  Own() : Model("Own") {}

 private:
  Tensors call(const Tensors& x, const CallContext&) override { return dense_(x); }
  Dense dense_ = track(Dense({.units = 1}));
};

TEST(KerasH5Test, AModelWithoutConfigIsAnErrorAndMakesNoFile) {
  const TemporaryFolder folder;
  const auto model = make_layer<Own>();
  model(Tensors(normal({1, 3}, 1)));
  EXPECT_THROW(write_keras_h5(*model, folder / "a.h5"), NotImplementedError);
  EXPECT_FALSE(std::filesystem::exists(folder / "a.h5"));
}

Tensor labels() { return Tensor::from<float>({1, 0, 1, 1, 0, 0}, {3, 2}); }

TEST(KerasH5Test, TrainingContinuesWithTheSameBits) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  model->compile(
      {.optimizer = optimizers::Adam({.learning_rate = 0.05}), .loss = "mse", .metrics = {"mae"}});
  const Tensors x(normal({3, 3}, 5));
  for (int i = 0; i < 3; ++i) model->train_on_batch(x, Tensors(labels()));
  write_keras_h5(*model, folder / "a.h5", {.optimizer_weights = true});
  const ModelHandle same = read_keras_h5(folder / "a.h5", {.compile = true});
  EXPECT_EQ(same->optimizer()->iterations(), 3);
  model->reset_metrics();
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(same->train_on_batch(x, Tensors(labels())),
              model->train_on_batch(x, Tensors(labels())));
  }
  EXPECT_EQ(values_of(same(x)), values_of(model(x)));
}

TEST(KerasH5Test, OptimizerStateIsOmittedUnlessRequested) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  model->compile({.optimizer = "adam", .loss = "mse"});
  model->train_on_batch(Tensors(normal({3, 3}, 5)), Tensors(labels()));
  write_keras_h5(*model, folder / "a.h5");
  EXPECT_FALSE(Hdf5File(folder / "a.h5").has("optimizer_weights"));
  EXPECT_FALSE(read_keras_h5(folder / "a.h5")->compiled());
  const ModelHandle same = read_keras_h5(folder / "a.h5", {.compile = true});
  EXPECT_TRUE(same->compiled());
  EXPECT_EQ(same->optimizer()->iterations(), 0);
}

// Keras 3 reads an entry with a module in the format of its archives.
TEST(KerasH5Test, ConfigsThatLegacyCannotExpressUseKeras3) {
  const TemporaryFolder folder;
  const Tensor x = layers::input({.shape = {4, 3}, .name = "x"});
  const Tensor steps = layers::TimeDistributed({.layer = Dense({.units = 3}), .name = "steps"})(x);
  const Tensor norm = layers::LayerNormalization({.axis = {1, 2}, .name = "norm"})(steps);
  const Tensor last = layers::LayerNormalization({.axis = -1, .name = "last"})(norm);
  const Tensor mixed = layers::Attention({.name = "mix"})(Tensors::list({last, last})).tensor();
  const Tensor heads =
      layers::GroupQueryAttention(
          {.head_dim = 2, .num_query_heads = 2, .num_key_value_heads = 1, .name = "heads"})(
          Tensors::list({mixed, mixed}))
          .tensor();
  const Functional model(
      {.inputs = x, .outputs = layers::FeatureCross({.name = "cross"})(heads), .name = "m"});
  write_keras_h5(*model, folder / "a.h5");
  const Config config = parse_json(Hdf5File(folder / "a.h5").string_attribute("/", "model_config"));
  std::map<std::string, Config> entries;
  for (const Config& entry : config["config"]["layers"].items()) {
    entries.emplace(entry["name"].string(), entry);
  }
  for (const char* name : {"norm", "mix", "heads"}) {
    EXPECT_EQ(entries[name]["module"].string(), "keras.layers") << name;
    EXPECT_TRUE(entries[name]["inbound_nodes"].is_list()) << name;
  }
  for (const char* name : {"x", "steps", "last", "cross"}) {
    EXPECT_EQ(entries[name].find("module"), nullptr) << name;
  }
  EXPECT_EQ(entries["steps"]["config"]["layer"]["module"].string(), "keras.layers");
  EXPECT_EQ(entries["cross"]["class_name"].string(), "keras_rs>FeatureCross");
  const Tensor batch = Tensor::from<float>({1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 1, 2}, {1, 4, 3});
  EXPECT_EQ(read_keras_h5(folder / "a.h5")(Tensors(batch)).tensor().to_vector<float>(),
            model(batch).to_vector<float>());
}

// Keras 3 records the operators of the mask, in .h5 files without their modules. The second step is
// masked, so that the mean is (1 + 3) / 2 and (2 + 4) / 2.
TEST(KerasH5Test, TheMaskOfMaskingIsRead) {
  const TemporaryFolder folder;
  const auto tensor = [](const char* layer, const char* shape, const char* dtype) {
    return str(R"({"class_name": "__keras_tensor__", "config": {"shape": )", shape,
               R"(, "dtype": ")", dtype, R"(", "keras_history": [")", layer, R"(", 0, 0]}})");
  };
  const std::string x = tensor("x", "[null, 3, 2]", "float32");
  const std::string config = str(
      R"({"class_name": "Functional", "config": {"name": "m", "trainable": true, "layers": [
      {"class_name": "InputLayer", "config": {"batch_shape": [null, 3, 2], "dtype": "float32",
       "sparse": false, "name": "x"}, "name": "x", "inbound_nodes": []},
      {"class_name": "NotEqual", "config": {"name": "ne"}, "name": "ne",
       "inbound_nodes": [{"args": [)",
      x, R"(, 0.0], "kwargs": {}}]},
      {"class_name": "Masking", "config": {"name": "mk", "trainable": true, "dtype": "float32",
       "mask_value": 0.0}, "name": "mk", "inbound_nodes": [{"args": [)",
      x, R"(], "kwargs": {}}]},
      {"class_name": "Any", "config": {"name": "any", "axis": [-1], "keepdims": false},
       "name": "any", "inbound_nodes": [{"args": [)",
      tensor("ne", "[null, 3, 2]", "bool"), R"(], "kwargs": {}}]},
      {"class_name": "GlobalAveragePooling1D", "config": {"name": "g", "trainable": true,
       "dtype": "float32", "data_format": "channels_last", "keepdims": false}, "name": "g",
       "inbound_nodes": [{"args": [)",
      tensor("mk", "[null, 3, 2]", "float32"), R"(], "kwargs": {"mask": )",
      tensor("any", "[null, 3]", "bool"), R"(}}]}],
      "input_layers": [["x", 0, 0]], "output_layers": [["g", 0, 0]]}})");
  testing_support::write(folder / "a.h5", {.version = "3.15.1", .config = config});
  const ModelHandle model = load_model(folder / "a.h5");
  const Tensor batch = Tensor::from<float>({1, 2, 0, 0, 3, 4}, {1, 3, 2});
  EXPECT_EQ(model(Tensors(batch)).tensor().to_vector<float>(), (std::vector<float>{2, 3}));
}

// Keras reads the layers of a Pipeline in the form of archives from both kinds of files.
TEST(KerasH5Test, LayersOfAPipelineHaveModules) {
  const Config model =
      parse_json(R"({"class_name": "Sequential", "config": {"name": "s", "layers": [
    {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 4, 4, 3],
     "dtype": "float32", "name": "in"}},
    {"class_name": "Pipeline", "config": {"name": "p", "layers": [
      {"class_name": "Rescaling", "config": {"scale": 0.5, "name": "r"}}]}}]}})");
  const LayerHandle<Layer> made = layers::deserialize(model);
  const Config legacy = to_keras_legacy(dynamic_cast<const Model&>(*made));
  const Config& pipeline = legacy["config"]["layers"].items().back();
  EXPECT_EQ(pipeline["config"]["layers"].items()[0]["module"].string(), "keras.layers");
}

TEST(KerasH5Test, LossesAndMetricsOfKerasRsAreSavedWithTheirPackage) {
  const Sequential model = mlp();
  model->compile({.optimizer = "sgd",
                  .loss = losses::PairwiseHingeLoss({}),
                  .metrics = {metrics::NDCG({.k = 2})}});
  const Config compiled = model->get_compile_config();
  const Config legacy = to_training_config(compiled), archive = to_compile_config(compiled);
  EXPECT_EQ(legacy["loss"]["class_name"].string(), "keras_rs>PairwiseHingeLoss");
  EXPECT_EQ(archive["loss"]["module"].string(), "keras_rs.losses");
  EXPECT_EQ(archive["loss"]["registered_name"].string(), "keras_rs>PairwiseHingeLoss");
  EXPECT_EQ(archive["metrics"].items()[0]["module"].string(), "keras_rs.metrics");
  for (const Config& stored : {legacy, archive}) {
    const Config read = from_training_config(stored);
    EXPECT_EQ(read["loss"]["class_name"].string(), "PairwiseHingeLoss");
    EXPECT_EQ(read["metrics"].items()[0]["class_name"].string(), "NDCG");
  }
}

TEST(KerasH5Test, LossesAndMetricsOfKeelAreNotWrittenAsThoseOfKeras) {
  const Sequential model = mlp();
  model->compile({.optimizer = "sgd",
                  .loss = losses::deserialize(parse_json(
                      R"({"class_name": "AutoCrossentropy", "config": {"reduction": "sum"}})")),
                  .metrics = {metrics::ExactAUC({})}});
  const Config archive = to_compile_config(model->get_compile_config());
  EXPECT_EQ(archive["loss"]["module"].string(), "keel.losses");
  EXPECT_EQ(archive["loss"]["registered_name"].string(), "keel>AutoCrossentropy");
  EXPECT_EQ(archive["metrics"].items()[0]["module"].string(), "keel.metrics");
  EXPECT_EQ(archive["metrics"].items()[0]["registered_name"].string(), "keel>ExactAUC");
  const Config read = from_training_config(archive);
  EXPECT_EQ(read["loss"]["class_name"].string(), "AutoCrossentropy");
  EXPECT_EQ(losses::deserialize(read["loss"])->reduction(), Reduction::kSum);
  EXPECT_EQ(metrics::deserialize(read["metrics"].items()[0])->class_name(), "ExactAUC");
}

TEST(KerasH5Test, FilesBeforeKeras316HaveTheWeightsOfTverskyExchanged) {
  const Config stored = parse_json(
      R"({"optimizer": "sgd", "loss": {"class_name": "Tversky", "config": {"alpha": 1, "beta": 3}}})");
  // One true positive, one false negative and no false positive. Keras 3.10 to 3.12 compute
  // 1 - tp / (tp + alpha fn + beta fp), Keras 3.16 exchanges fn and fp.
  const Tensor y = Tensor::from<double>({1, 1, 0}, {3, 1});
  const Tensor p = Tensor::from<double>({1, 0, 0}, {3, 1});
  const auto loss = [&](const std::string& version) {
    const Config read = from_training_config(stored, version);
    return losses::deserialize(read["loss"])->per_sample(y, p).item<double>();
  };
  for (const char* version : {"3.10.0", "3.12.4", "3.15.1", "2.15.0", ""}) {
    EXPECT_NEAR(loss(version), 1 - 1.0 / 2, 1e-6) << version;
  }
  EXPECT_NEAR(loss("3.16.0"), 1 - 1.0 / 4, 1e-6);
  EXPECT_NEAR(loss("4.0.1"), 1 - 1.0 / 4, 1e-6);
  // Files that Keel writes are those of Keras 3.8.
  const Sequential model = mlp();
  model->compile({.optimizer = "sgd", .loss = losses::Tversky({.alpha = 0.25, .beta = 0.75})});
  const Config compiled = model->get_compile_config();
  for (const Config& written : {to_training_config(compiled), to_compile_config(compiled)}) {
    EXPECT_EQ(written["loss"]["config"]["alpha"].number(), 0.75);
    EXPECT_EQ(from_training_config(written)["loss"]["config"]["alpha"].number(), 0.25);
  }
}

TEST(KerasH5Test, LossesAreWrittenUnderNamesThatKeras3Knows) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  model->compile({.optimizer = "sgd", .loss = "mse"});
  write_keras_h5(*model, folder / "a.h5");
  const Config config =
      parse_json(Hdf5File(folder / "a.h5").string_attribute("/", "training_config"));
  EXPECT_EQ(config["loss"].string(), "mean_squared_error");
  EXPECT_TRUE(config["loss_weights"].is_null());
  EXPECT_EQ(config["optimizer_config"]["class_name"].string(), "SGD");
}

TEST(KerasH5Test, AllNamesOfLossesAreThoseOfKerasFunctionsOrObjects) {
  const std::pair<const char*, const char*> names[] = {
      {"MSE", "mean_squared_error"},
      {"Huber", "huber"},
      {"logcosh", "log_cosh"},
      {"kld", "kl_divergence"},
      {"BinaryCrossentropy", "binary_crossentropy"}};
  const Config sgd = parse_json(R"({"class_name": "SGD", "config": {}})");
  for (const auto& [name, function] : names) {
    const Config stored = to_training_config(Config::dict({{"optimizer", sgd}, {"loss", name}}));
    EXPECT_EQ(stored["loss"].string(), function);
  }
  const Config of_keras_rs =
      to_training_config(Config::dict({{"optimizer", sgd}, {"loss", "PairwiseHingeLoss"}}));
  EXPECT_EQ(of_keras_rs["loss"]["class_name"].string(), "keras_rs>PairwiseHingeLoss");
}

// Keras looks up the functions of metrics by their module.
TEST(KerasH5Test, FunctionsOfMetricsHaveModules) {
  const Config compiled = parse_json(R"({
    "optimizer": {"class_name": "SGD", "config": {}}, "loss": "mse", "metrics": [
    {"class_name": "NDCG", "config": {"gain_fn": "Mine>gain"}},
    {"class_name": "MeanMetricWrapper", "config": {"fn": "mse"}},
    {"class_name": "MeanMetricWrapper",
     "config": {"fn": {"class_name": "PairwiseHingeLoss", "config": {}}}}]})");
  for (const Config& stored : {to_training_config(compiled), to_compile_config(compiled)}) {
    const Config::List& metrics = stored["metrics"].items();
    const Config& gain = metrics[0]["config"]["gain_fn"];
    EXPECT_EQ(gain["module"].string(), "builtins");
    EXPECT_EQ(gain["class_name"].string(), "function");
    EXPECT_EQ(gain["config"].string(), "Mine>gain");
    const Config& function = metrics[1]["config"]["fn"];
    EXPECT_EQ(function["module"].string(), "builtins");
    EXPECT_EQ(function["config"].string(), "mean_squared_error");
    const Config& loss = metrics[2]["config"]["fn"];
    EXPECT_EQ(loss["module"].string(), "keras_rs.losses");
    EXPECT_EQ(loss["registered_name"].string(), "keras_rs>PairwiseHingeLoss");
    const Config read = from_training_config(stored);
    EXPECT_EQ(metrics::deserialize(read["metrics"].items()[2])->class_name(), "MeanMetricWrapper");
  }
}

TEST(KerasH5Test, TheDecayOfKeras2OptimizersIsIgnoredWithAWarning) {
  const auto optimizer_of = [](const std::string& class_name, const Config& decay) {
    const Config config = Config::dict({{"learning_rate", 0.5}, {"decay", decay}});
    return from_training_config(Config::dict(
        {{"loss", "mse"},
         {"optimizer_config",
          Config::dict({{"class_name", class_name}, {"config", config}})}}))["optimizer"]["config"];
  };
  testing::internal::CaptureStderr();
  EXPECT_EQ(optimizer_of("SGD", 0.25).find("decay"), nullptr);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("decay, 0.25, is ignored"));
  testing::internal::CaptureStderr();
  EXPECT_EQ(optimizer_of("SGD", 0.0)["decay"].number(), 0);
  EXPECT_EQ(optimizer_of("Mine>Optimizer", 0.25)["decay"].number(), 0.25);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

using State = std::vector<std::pair<std::string, Tensor>>;

// Writes a compiled model's file with these contents of /optimizer_weights and reads it.
ModelHandle with_optimizer_state(const TemporaryFolder& folder, const State& state) {
  const Sequential model = mlp();
  model->compile({.optimizer = "adam", .loss = "mse"});
  write_keras_h5(*model, folder / "source.h5");
  const Hdf5File source(folder / "source.h5");
  Hdf5Writer file(folder / "a.h5");
  for (const char* attribute : {"model_config", "training_config"}) {
    file.write_attribute("/", attribute, source.string_attribute("/", attribute));
  }
  for (const LayerWeights& layer : weights_by_layer(*model)) {
    Names names;
    for (const NamedWeight& weight : layer.weights) {
      names.push_back(weight.name);
      file.write("/model_weights/" + layer.layer + "/" + weight.name, weight.entry.get());
    }
    file.write_string_list("/model_weights/" + layer.layer, "weight_names", names);
  }
  file.write_string_list("/model_weights", "layer_names", {"one", "two"});
  Names names;
  for (const auto& [name, value] : state) {
    names.push_back(name);
    file.write("/optimizer_weights/" + name, value);
  }
  file.write_string_list("/optimizer_weights", "weight_names", names);
  file.commit();
  return read_keras_h5(folder / "a.h5", {.compile = true});
}

const std::vector<Shape> kShapes = {{3, 4}, {4}, {4, 2}, {2}};

void expect_state(const ModelHandle& model) {
  EXPECT_EQ(model->optimizer()->iterations(), 9);
  const std::vector<Variable> variables = model->trainable_variables();
  for (size_t v = 0; v < 4; ++v) {
    const std::vector<Variable> slots = model->optimizer()->slots(variables[v]);
    EXPECT_EQ(slots[0].read().to_vector<float>(), values_of(normal(kShapes[v], 10 * v)));
    EXPECT_EQ(slots[1].read().to_vector<float>(), values_of(normal(kShapes[v], 10 * v + 1)));
  }
}

TEST(KerasH5Test, OptimizerStateOfKeras3IsRead) {
  const TemporaryFolder folder;
  State state = {{"adam/iteration", Tensor::scalar<int32_t>(9)},
                 {"adam/learning_rate", Tensor::scalar<float>(0.5)}};
  for (size_t v = 0; v < 4; ++v) {
    state.emplace_back(str("adam/mlp_w", v, "_momentum"), normal(kShapes[v], 10 * v));
    state.emplace_back(str("adam/mlp_w", v, "_velocity"), normal(kShapes[v], 10 * v + 1));
  }
  expect_state(with_optimizer_state(folder, state));
}

TEST(KerasH5Test, OptimizerStateOfKeras24IsRead) {
  const TemporaryFolder folder;
  State state = {{"Adam/iter:0", Tensor::scalar<int64_t>(9)}};
  for (size_t v = 0; v < 4; ++v) {
    state.emplace_back(str("Adam/layer/w", v, "/m:0"), normal(kShapes[v], 10 * v));
  }
  for (size_t v = 0; v < 4; ++v) {
    state.emplace_back(str("Adam/layer/w", v, "/v:0"), normal(kShapes[v], 10 * v + 1));
  }
  expect_state(with_optimizer_state(folder, state));
}

TEST(KerasH5Test, IncompatibleOptimizerStateIsAnError) {
  const TemporaryFolder folder;
  const std::pair<std::string, Tensor> iteration = {"iteration:0", Tensor::scalar<int64_t>(9)};
  State wrong = {iteration};
  for (size_t v = 0; v < 4; ++v) wrong.emplace_back(str("Adam/m/w", v, "/k:0"), normal({5}, v));
  EXPECT_THROW(with_optimizer_state(folder, wrong), ValueError);
  EXPECT_THROW(with_optimizer_state(folder, {iteration, {"Adam/odd", normal({3, 4}, 1)}}), IoError);
  EXPECT_THROW(with_optimizer_state(folder, {}), IoError);
}

}  // namespace keel::keras_h5_test
