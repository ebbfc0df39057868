// Tests files of models with int8 tables, in Keras's layout.
#include <algorithm>
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/framework/internal/quantizers.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/embedding/tpu_embedding.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/registry.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/serving_plan.h>
#include <keel/layers/wrappers/wrappers.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/checkpoint/checkpoint.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/support/errors.h"
#include "tests/support/keras_archives.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::int8_tables_test {

using layers::Dense;
using layers::Embedding;
using testing::HasSubstr;
using testing_support::config_in;
using testing_support::message_of;
using testing_support::TemporaryFolder;
using testing_support::values_of;

constexpr int64_t kLimit = 1 << 20;

Tensor ids() { return Tensor::from<int64_t>({6, 0, 3, 3, 2, 5}, {2, 3}); }

Sequential ranker() {
  return Sequential(
      {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}, .dtype = DType::kInt64}),
                  Embedding({.input_dim = 7, .output_dim = 4, .name = "items"}),
                  layers::Flatten({}), Dense({.units = 2})},
       .name = "ranker"});
}

const EmbeddingLayer& table_of(const Model& model, size_t layer) {
  return dynamic_cast<const EmbeddingLayer&>(*model.layers().at(layer));
}

Sequential quantized_ranker() {
  const Sequential model = ranker();
  dynamic_cast<EmbeddingLayer&>(*model->layers()[0]).quantize("int8");
  return model;
}

void expect_same_table(const EmbeddingLayer& a, const EmbeddingLayer& b) {
  EXPECT_EQ(a.embeddings().read().to_vector<int8_t>(), b.embeddings().read().to_vector<int8_t>());
  EXPECT_EQ(a.embeddings_scale().read().to_vector<float>(),
            b.embeddings_scale().read().to_vector<float>());
}

TEST(Int8TablesTest, QuantizedLayersRoundTripInWholeModels) {
  const TemporaryFolder folder;
  const Sequential model = quantized_ranker();
  for (const char* file : {"a.keras", "a.h5"}) {
    save_model(model, folder / file);
    const ModelHandle same = load_model(folder / file);
    EXPECT_EQ(same->layers()[0]->dtype_policy().name(), "int8_from_float32") << file;
    expect_same_table(table_of(*same, 0), table_of(*model, 0));
    EXPECT_EQ(values_of(same(Tensors(ids()))), values_of(model(Tensors(ids())))) << file;
    EXPECT_EQ(values_of(ServingPlan(same)(Tensors(ids()))), values_of(model(Tensors(ids()))))
        << file;
  }
}

TEST(Int8TablesTest, TheLayoutMatchesKeras) {
  const TemporaryFolder folder;
  const Sequential model = quantized_ranker();
  save_model(model, folder / "a.keras");
  const Config layer = config_in(folder / "a.keras")["config"]["layers"].items()[1];
  EXPECT_EQ(layer["class_name"], Config("Embedding"));
  EXPECT_EQ(to_json(layer["config"]["dtype"]),
            R"({"module": "keras.dtype_policies", "class_name": "QuantizedDTypePolicy", )"
            R"("config": {"mode": "int8", "source_name": "float32"}, "registered_name": null})");
  EXPECT_EQ(layer["config"].find("quantization_config"), nullptr) << "older Keras has none";
  save_weights(model, folder / "a.weights.h5");
  ZipFile(folder / "a.keras").extract("model.weights.h5", folder / "b.weights.h5");
  for (const char* name : {"a.weights.h5", "b.weights.h5"}) {
    const Hdf5File file(folder / name);
    const std::string vars = "/layers/embedding/vars";
    EXPECT_EQ(file.children(vars), (std::vector<std::string>{"0", "1"})) << name;
    EXPECT_EQ(file.spec(vars + "/0"), (TensorSpec{.shape = {7, 4}, .dtype = DType::kInt8}));
    EXPECT_EQ(file.spec(vars + "/1"), (TensorSpec{.shape = {7}, .dtype = DType::kFloat32}));
    EXPECT_EQ(file.read(vars + "/0").to_vector<int8_t>(),
              table_of(*model, 0).embeddings().read().to_vector<int8_t>());
  }
}

TEST(Int8TablesTest, WeightsAloneAreReadIntoAQuantizedModel) {
  const TemporaryFolder folder;
  const Sequential model = quantized_ranker();
  for (const char* file : {"a.weights.h5", "a.h5"}) {
    save_weights(model, folder / file);
    const Sequential same = quantized_ranker();
    load_weights(same, folder / file);
    expect_same_table(table_of(*same, 0), table_of(*model, 0));
    EXPECT_EQ(values_of(same(Tensors(ids()))), values_of(model(Tensors(ids())))) << file;
  }
}

TEST(Int8TablesTest, CheckpointsKeepThem) {
  const TemporaryFolder folder;
  const Sequential model = quantized_ranker(), same = quantized_ranker();
  Checkpoint({.model = model}).write(folder / "ckpt", 1);
  Checkpoint({.model = same}).restore(folder / "ckpt").assert_consumed();
  expect_same_table(table_of(*same, 0), table_of(*model, 0));
}

// Returns the weights of quantized_ranker() with these table weights.
std::string with_table(const TemporaryFolder& folder, const std::optional<Tensor>& codes,
                       const std::optional<Tensor>& scales) {
  const std::string from = folder / "whole.weights.h5", to = folder / "odd.weights.h5";
  save_weights(quantized_ranker(), from);
  const Hdf5File whole(from);
  Hdf5Writer out(to);
  for (const char* name : {"embedding", "dense"}) {
    const std::string vars = str("/layers/", name, "/vars");
    out.create_group(vars);
    for (const char* number : {"/0", "/1"}) {
      const bool of_table = std::string(name) == "embedding";
      const std::optional<Tensor>& odd = number[1] == '0' ? codes : scales;
      out.write(vars + number, of_table && odd ? *odd : whole.read(vars + number));
    }
  }
  out.commit();
  return to;
}

TEST(Int8TablesTest, DamagedTablesAreErrorsBeforeAnythingIsRead) {
  const TemporaryFolder folder;
  const Sequential model = quantized_ranker();
  const std::vector<float> before = values_of(model(Tensors(ids())));
  const Tensor zero = Tensor::from<float>({1, 1, 1, 0, 1, 1, 1}, {7});
  const Tensor floats = Tensor::zeros({7, 4}), codes = Tensor::zeros({7}, DType::kInt8);
  struct Case {
    std::optional<Tensor> codes, scales;
    std::string message;
  };
  for (const Case& c : std::vector<Case>{
           {{}, zero, "embeddings_scale must be positive and finite, received 0"},
           {{}, Tensor::full<float>({6}, 1), "requires shape (7,), the file has (6,)"},
           {{}, Tensor::full<float>({7, 1}, 1), "requires shape (7,), the file has (7, 1)"},
           {{}, codes, "requires float32, the file has int8"},
           {floats, {}, "requires int8, the file has float32"},
           {Tensor::zeros({7, 3}, DType::kInt8),
            {},
            "requires shape (7, 4), the file has (7, 3)"}}) {
    const std::string file = with_table(folder, c.codes, c.scales);
    const std::string message = message_of<ValueError>([&] { load_weights(model, file); });
    EXPECT_THAT(message, HasSubstr(c.message));
    EXPECT_EQ(values_of(model(Tensors(ids()))), before);
  }
  load_weights(model, with_table(folder, {}, {}));
}

TEST(Int8TablesTest, AScaleOfZeroIsRejectedInEveryFormat) {
  const TemporaryFolder folder;
  const Sequential odd = quantized_ranker(), model = quantized_ranker();
  table_of(*odd, 0).embeddings_scale().assign(Tensor::zeros({7}));
  save_model(odd, folder / "a.keras");
  save_model(odd, folder / "a.h5");
  save_weights(odd, folder / "b.h5");
  const std::vector<float> before = values_of(model(Tensors(ids())));
  for (const char* file : {"a.keras", "a.h5"}) {
    EXPECT_THROW(load_model(folder / file), ValueError) << file;
  }
  for (const char* file : {"a.keras", "a.h5", "b.h5"}) {
    EXPECT_THROW(load_weights(model, folder / file), ValueError) << file;
    EXPECT_EQ(values_of(model(Tensors(ids()))), before) << file;
  }
}

TEST(Int8TablesTest, CodesAreNotReadAsFloats) {
  const TemporaryFolder folder;
  save_weights(quantized_ranker(), folder / "int8.weights.h5");
  EXPECT_THROW(load_weights(ranker(), folder / "int8.weights.h5"), ValueError);
  save_weights(ranker(), folder / "float.h5");
  EXPECT_THROW(load_weights(quantized_ranker(), folder / "float.h5"), ValueError);
}

TEST(Int8TablesTest, AnExportLeavesTheModelAsItIs) {
  const TemporaryFolder folder;
  const Sequential model = ranker();
  model->compile({.optimizer = optimizers::Adam({}), .loss = "mse"});
  const std::vector<float> before = values_of(model(Tensors(ids())));
  for (const char* file : {"a.keras", "a.h5"}) {
    save_model(model, folder / file, {.table_dtype = "int8"});
    EXPECT_EQ(values_of(model(Tensors(ids()))), before);
    EXPECT_EQ(table_of(*model, 0).embeddings().dtype(), DType::kFloat32);
    const ModelHandle small = load_model(folder / file);
    EXPECT_EQ(small->name(), model->name());
    EXPECT_FALSE(small->compiled());
    const QuantizedTable table = abs_max_quantize(table_of(*model, 0).embeddings(), "test");
    EXPECT_EQ(table_of(*small, 0).embeddings().read().to_vector<int8_t>(),
              table.codes.to_vector<int8_t>());
    EXPECT_EQ(table_of(*small, 0).embeddings_scale().read().to_vector<float>(),
              table.scales.to_vector<float>());
    const std::vector<float> after = values_of(small(Tensors(ids())));
    EXPECT_NE(after, before);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_NEAR(after[i], before[i], 2e-3);
    EXPECT_EQ(values_of(ServingPlan(small)(Tensors(ids()))), after);
  }
  EXPECT_THROW(save_model(model, folder / "b.keras", {.table_dtype = "int4"}), ValueError);
  EXPECT_FALSE(std::filesystem::exists(folder / "b.keras"));
}

// Covers a layer that is called twice, a layer in a nested model, a layer in a wrapper, and masks.
TEST(Int8TablesTest, NestedModelsAreQuantized) {
  const TemporaryFolder folder;
  const Tensor a = layers::input({.shape = {3}, .dtype = DType::kInt64, .name = "a"});
  const Tensor b = layers::input({.shape = {3}, .dtype = DType::kInt64, .name = "b"});
  const Tensor c = layers::input({.shape = {3, 1}, .dtype = DType::kInt64, .name = "c"});
  const Embedding twice({.input_dim = 7, .output_dim = 4, .mask_zero = true, .name = "twice"});
  const layers::TimeDistributed wrapped(
      {.layer = Embedding({.input_dim = 7, .output_dim = 2, .name = "inner"}), .name = "wrapped"});
  const Functional model({.inputs = Tensors::list({a, b, c}),
                          .outputs = Tensors::list({twice(a), twice(b), ranker()(a), wrapped(c)}),
                          .name = "graph"});
  const Tensors batch = Tensors::list({ids(), ids(), ids().reshaped({2, 3, 1})});
  const Tensors before = model(batch);
  const ModelHandle made = with_int8_tables(*model);
  EXPECT_NE(&*made, &*model);
  save_model(model, folder / "a.keras", {.table_dtype = "int8"});
  for (const ModelHandle& small : {made, load_model(folder / "a.keras")}) {
    std::vector<std::string> tables;
    for (const Variable& v : small->weights()) tables.push_back(str(v.name(), ' ', v.dtype()));
    EXPECT_EQ(std::ranges::count(tables, "embeddings int8"), 2);
    EXPECT_EQ(std::ranges::count(tables, "embeddings_scale float32"), 2);
    EXPECT_EQ(std::ranges::count(tables, "embeddings float32"), 1) << "of the wrapped layer";
    const Tensors after = small(batch);
    for (size_t i = 0; i < 4; ++i) {
      const std::vector<float> x = values_of(after[i]), y = values_of(before[i]);
      for (size_t j = 0; j < x.size(); ++j) EXPECT_NEAR(x[j], y[j], 2e-3) << i;
    }
    EXPECT_EQ(values_of(after[0]), values_of(after[1])) << "one table";
    EXPECT_EQ(values_of(after[3]), values_of(before[3]));
    ASSERT_TRUE(after[0].tensor().mask());
    EXPECT_EQ(after[0].tensor().mask().to_vector<bool>(),
              before[0].tensor().mask().to_vector<bool>());
  }
  EXPECT_EQ(values_of(model(batch)[0]), values_of(before[0]));
}

TEST(Int8TablesTest, ForKerasTablesOfTPUEmbeddingBecomeInt8Ones) {
  const TemporaryFolder folder;
  const Table users = make_table({.vocabulary_size = 7, .dim = 4, .name = "users"});
  const Tensors inputs = {
      {"user", layers::input({.dtype = DType::kInt64, .name = "user"})},
      {"friends", layers::input({.shape = {3}, .dtype = DType::kInt64, .name = "friends"})}};
  const layers::TPUEmbedding embedding(
      {.feature_config = {{"user", FeatureConfig{.table = users}},
                          {"friends", FeatureConfig{.table = users}}},
       .name = "embedding"});
  const Functional model({.inputs = inputs, .outputs = embedding(inputs), .name = "m"});
  const Tensors batch = {{"user", Tensor::from<int64_t>({6, 0}, {2})}, {"friends", ids()}};
  const Tensors before = model(batch);
  const std::string message = message_of<ValueError>(
      [&] { save_model(model, folder / "a.keras", {.table_dtype = "int8"}); });
  EXPECT_THAT(message, HasSubstr("TPUEmbedding 'embedding'"));
  for (const char* file : {"a.keras", "a.h5"}) {
    save_model(model, folder / file, {.for_keras = true, .table_dtype = "int8"});
    const ModelHandle small = load_model(folder / file);
    ASSERT_EQ(small->weights().size(), 2U) << "features of one table share its layer";
    const QuantizedTable table = abs_max_quantize(embedding->embedding_tables()[0].second, "test");
    EXPECT_EQ(small->weights()[0].read().to_vector<int8_t>(), table.codes.to_vector<int8_t>());
    const Tensors after = small(batch);
    for (const char* name : {"user", "friends"}) {
      const std::vector<float> x = values_of(after[name]), y = values_of(before[name]);
      ASSERT_EQ(x.size(), y.size());
      EXPECT_NE(x, y);
      for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(x[i], y[i], 0.02) << file;
    }
    const ServingPlan plan(small);
    EXPECT_EQ(plan.called_layers(), std::vector<std::string>());
    EXPECT_EQ(values_of(plan(batch)["friends"]), values_of(after["friends"]));
  }
  EXPECT_EQ(values_of(model(batch)["user"]), values_of(before["user"]));
}

TEST(Int8TablesTest, AModelWithoutTablesIsUnchanged) {
  const Sequential model(
      {.layers = {LayerHandle<InputLayer>({.batch_shape = {kUnknown, 3}}), Dense({.units = 2})}});
  EXPECT_EQ(&*with_int8_tables(*model), &*model);
  const Sequential done = quantized_ranker();
  EXPECT_EQ(&*with_int8_tables(*done), &*done);
}

TEST(Int8TablesTest, InvalidTablesAndSubclassedModelsAreErrors) {
  const TemporaryFolder folder;
  const Sequential model = ranker();
  const Variable& table = table_of(*model, 0).embeddings();
  table.assign(Tensor::full<float>({7, 4}, std::nanf("")));
  const std::string message = message_of<ValueError>(
      [&] { save_model(model, folder / "a.keras", {.table_dtype = "int8"}); });
  EXPECT_THAT(message, HasSubstr("Embedding 'items'"));
  EXPECT_FALSE(std::filesystem::exists(folder / "a.keras"));
  class Own final : public Model {
   public:
    Own() : Model("Own") {}
    Tensors call(const Tensors& x, const CallContext&) override { return table_(x.tensor()); }

   private:
    Embedding table_ = track(Embedding({.input_dim = 7, .output_dim = 2}));
  };
  const ModelHandle own = make_layer<Own>();
  own(Tensors(ids()));
  EXPECT_THROW(with_int8_tables(*own), ValueError);
}

// Uses the config that Keras writes since it has one config per quantization mode.
TEST(Int8TablesTest, QuantizationConfigsOfKerasAreIgnored) {
  const LayerHandle<Layer> layer = layers::deserialize(parse_json(R"({
      "module": "keras.layers", "class_name": "Embedding", "registered_name": null, "config": {
      "name": "e", "trainable": true, "input_dim": 3, "output_dim": 2, "dtype": {
        "module": "keras.dtype_policies", "class_name": "QuantizedDTypePolicy",
        "config": {"mode": "int8", "source_name": "float32"}, "registered_name": null},
      "quantization_config": {"module": "keras.quantizers", "class_name": "Int8QuantizationConfig",
        "config": {"weight_quantizer": null, "activation_quantizer": null},
        "registered_name": null}}})"));
  EXPECT_EQ(layer->dtype_policy().name(), "int8_from_float32");
}

}  // namespace keel::int8_tables_test
