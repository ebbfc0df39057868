// Tests save_weights and load_weights: files with only weights, in the legacy layout and in Keras
// 3's layout.
// Tests savedmodel/keras/internal/keras_weights_h5.cc.
#include <absl/strings/match.h>
#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/attention/grouped_query_attention.h>
#include <keel/layers/attention/multi_head_attention.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/layer_types.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/optimizers/adam.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/savedmodel/keras/legacy_file.h"
#include "tests/support/errors.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::keras_weights_test {

using layers::Dense;
using testing::HasSubstr;
using testing_support::message_of;
using testing_support::TemporaryFolder;
using testing_support::values_of;
using Input = LayerHandle<InputLayer>;
using Names = std::vector<std::string>;

Tensor batch() { return Tensor::from<float>({1, -2, 3, 4, 5, -6}, {2, 3}); }

Sequential mlp(int64_t units = 2, const std::string& second = "two") {
  return Sequential(
      {.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}),
                  Dense({.units = 4, .name = "one"}), Dense({.units = units, .name = second})},
       .name = "mlp"});
}

TEST(KerasWeightsTest, WeightsOfBothFormatsAreTheSameBitsWhenLoaded) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  for (const char* name : {"a.h5", "a.hdf5", "a.weights.h5"}) {
    const Sequential other = mlp();
    ASSERT_NE(values_of(other(Tensors(batch()))), values_of(model(Tensors(batch()))));
    save_weights(model, folder / name);
    EXPECT_TRUE(load_weights(other, folder / name).empty());
    EXPECT_EQ(values_of(other(Tensors(batch()))), values_of(model(Tensors(batch()))));
  }
}

TEST(KerasWeightsTest, WeightsOfWholeModelsAreLoaded) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  for (const char* name : {"a.h5", "a.keras"}) {
    save_model(model, folder / name);
    const Sequential other = mlp();
    load_weights(other, folder / name);
    EXPECT_EQ(values_of(other(Tensors(batch()))), values_of(model(Tensors(batch()))));
  }
}

TEST(KerasWeightsTest, TheLegacyLayoutIsAtTheRoot) {
  const TemporaryFolder folder;
  save_weights(mlp(), folder / "a.h5");
  const Hdf5File file(folder / "a.h5");
  EXPECT_EQ(file.string_list("/", "layer_names"), (Names{"one", "two"}));
  EXPECT_EQ(file.string_attribute("/", "backend"), "tensorflow");
  EXPECT_EQ(file.string_attribute("/", "keras_version"), "3.8.0");
  EXPECT_EQ(file.string_list("one", "weight_names"), (Names{"one/kernel:0", "one/bias:0"}));
  EXPECT_FALSE(file.has_attribute("/", "model_config"));
}

// A model with a shared layer, a nested model and several layers of one class.
Functional nested() {
  const Tensor a = layers::input({.shape = {3}, .name = "a"});
  const Tensor b = layers::input({.shape = {3}, .name = "b"});
  const Dense shared({.units = 2, .name = "shared"});
  const Sequential tower({.layers = {Input({.batch_shape = {kUnknown, 2}, .name = "in"}),
                                     Dense({.units = 2, .name = "inner"}),
                                     layers::BatchNormalization({.name = "norm"})},
                          .name = "tower"});
  const Tensor both =
      layers::Concatenate({.name = "both"})(Tensors::list({shared(a), shared(b)})).tensor();
  const Tensor y =
      layers::Concatenate({.name = "all"})(Tensors::list({tower(shared(a)), both})).tensor();
  return Functional({.inputs = Tensors::list({a, b}),
                     .outputs = Dense({.units = 1, .name = "out"})(y),
                     .name = "nested"});
}

TEST(KerasWeightsTest, GroupsOfKeras3AreNamedByClassAndNumberedInTheModelsOrder) {
  const TemporaryFolder folder;
  save_weights(nested(), folder / "a.weights.h5");
  const Hdf5File file(folder / "a.weights.h5");
  EXPECT_EQ(file.children("/"), (Names{"layers", "vars"}));
  EXPECT_EQ(file.children("layers"), (Names{"concatenate", "concatenate_1", "dense", "dense_1",
                                            "input_layer", "input_layer_1", "sequential"}));
  EXPECT_EQ(file.string_attribute("vars", "name"), "nested");
  EXPECT_EQ(file.string_attribute("layers/dense/vars", "name"), "shared");
  EXPECT_EQ(file.string_attribute("layers/dense_1/vars", "name"), "out");
  EXPECT_EQ(file.children("layers/dense/vars"), (Names{"0", "1"}));
  EXPECT_TRUE(file.children("layers/input_layer/vars").empty());
  EXPECT_EQ(file.children("layers/sequential/layers"), (Names{"batch_normalization", "dense"}));
  EXPECT_EQ(file.children("layers/sequential/layers/batch_normalization/vars"),
            (Names{"0", "1", "2", "3"}));
}

TEST(KerasWeightsTest, GroupsOfGroupedQueryAttentionAreNamedAsInKeras) {
  const TemporaryFolder folder;
  const Tensor x = layers::input({.shape = {3, 4}, .name = "x"});
  const layers::GroupQueryAttention heads(
      {.head_dim = 2, .num_query_heads = 2, .num_key_value_heads = 1});
  const Functional model({.inputs = x, .outputs = heads(Tensors::list({x, x}))});
  save_weights(model, folder / "a.weights.h5");
  const Hdf5File file(folder / "a.weights.h5");
  for (const char* name : {"_query_dense", "_key_dense", "_value_dense", "_output_dense"}) {
    const std::string vars = str("layers/grouped_query_attention/", name, "/vars");
    ASSERT_TRUE(file.has(vars)) << vars;
    EXPECT_EQ(file.children(vars), (Names{"0", "1"}));
  }
}

TEST(KerasWeightsTest, TheOptimizersStateFollowsTheIterationsAndTheRate) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  model->compile({.optimizer = optimizers::Adam({.learning_rate = 0.5}), .loss = "mse"});
  model->train_on_batch(Tensors(batch()), Tensors(Tensor::zeros({2, 2})));
  save_weights(model, folder / "a.weights.h5");
  {
    const Hdf5File file(folder / "a.weights.h5");
    EXPECT_EQ(file.string_attribute("optimizer/vars", "name"), "adam");
    EXPECT_EQ(file.children("optimizer/vars").size(), 2U + 4 * 2);
    EXPECT_EQ(file.spec("optimizer/vars/0").shape, Shape());
    EXPECT_EQ(file.read("optimizer/vars/1").item<float>(), 0.5f);
    EXPECT_EQ(file.spec("optimizer/vars/3").shape, Shape({3, 4}));
    EXPECT_EQ(file.spec("optimizer/vars/4").shape, Shape({4}));
  }
  const Sequential other = mlp();
  other->compile({.optimizer = "adam", .loss = "mse"});
  load_weights(other, folder / "a.weights.h5");
  EXPECT_EQ(other->optimizer()->iterations(), 1);
  EXPECT_EQ(other->optimizer()->learning_rate(), 0.5);
  model->reset_metrics();
  EXPECT_EQ(other->train_on_batch(Tensors(batch()), Tensors(Tensor::zeros({2, 2}))),
            model->train_on_batch(Tensors(batch()), Tensors(Tensor::zeros({2, 2}))));
}

TEST(KerasWeightsTest, ByNameOnlyLayersOfThoseNamesAreLoaded) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  save_weights(model, folder / "a.h5");
  const Sequential other = mlp(2, "new");
  const auto before = values_of(other->get_layer("new")->weights()[0].read());
  load_weights(other, folder / "a.h5", {.by_name = true});
  EXPECT_EQ(values_of(other->get_layer("one")->weights()[0].read()),
            values_of(model->get_layer("one")->weights()[0].read()));
  EXPECT_EQ(values_of(other->get_layer("new")->weights()[0].read()), before);
}

TEST(KerasWeightsTest, IncompatibleWeightsAreErrorsAndChangeNothing) {
  const TemporaryFolder folder;
  for (const char* name : {"a.h5", "a.weights.h5"}) {
    save_weights(mlp(5), folder / name);
    const Sequential other = mlp();
    const auto before = values_of(other(Tensors(batch())));
    const std::string message = message_of<ValueError>([&] { load_weights(other, folder / name); });
    for (const char* part : {"'two'", "kernel", "(4, 2)", "(4, 5)"}) {
      EXPECT_THAT(message, HasSubstr(part));
    }
    EXPECT_EQ(values_of(other(Tensors(batch()))), before);
  }
}

TEST(KerasWeightsTest, IncompatibleWeightsAreSkippedAndReportedOnRequest) {
  const TemporaryFolder folder;
  const Sequential model = mlp(5);
  for (const char* name : {"a.h5", "a.weights.h5"}) {
    save_weights(model, folder / name);
    const Sequential other = mlp();
    const Names skipped = load_weights(other, folder / name, {.skip_mismatch = true});
    ASSERT_EQ(skipped.size(), 2U);
    EXPECT_THAT(skipped[0], HasSubstr("'two'"));
    EXPECT_EQ(values_of(other->weights()[0].read()), values_of(model->weights()[0].read()));
  }
}

TEST(KerasWeightsTest, InvalidSuffixesAndOptionsAreErrors) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  EXPECT_THROW(save_weights(model, folder / "a.keras"), ValueError);
  EXPECT_THROW(save_weights(model, folder / "a.txt"), ValueError);
  EXPECT_THROW(load_weights(model, folder / "a.txt"), ValueError);
  EXPECT_THROW(load_weights(model, folder / "none.h5"), IoError);
  save_weights(model, folder / "a.weights.h5");
  EXPECT_THROW(load_weights(model, folder / "a.weights.h5", {.by_name = true}), ValueError);
  EXPECT_THROW(save_weights(model, folder / "a.weights.h5", {.overwrite = false}), ValueError);
}

TEST(KerasWeightsTest, AModelWithoutWeightsYetIsAnError) {
  const TemporaryFolder folder;
  const Sequential model({.layers = {Dense({.units = 2})}});
  EXPECT_THROW(save_weights(model, folder / "a.h5"), RuntimeError);
  EXPECT_THROW(save_weights(model, folder / "a.weights.h5"), RuntimeError);
}

// A subclassed model whose layers are attributes.
class Towers final : public Model, public SublayerAttributes {
 public:
  Towers() : Model("Towers") {}
  std::vector<std::string> sublayer_attributes() const override {
    return {"zero", "first", "_own"};
  }

 private:
  Tensors call(const Tensors& x, const CallContext&) override {
    return own_(first_(zero_(x.tensor())));
  }
  Dense zero_ = track(Dense({.units = 3, .name = "z"}));
  Dense first_ = track(Dense({.units = 4, .name = "f"}));
  Dense own_ = track(Dense({.units = 1, .name = "o"}));
};

LayerHandle<Towers> towers() {
  auto model = make_layer<Towers>();
  model(Tensors(batch()));
  return model;
}

TEST(KerasWeightsTest, AModelWithoutAConfigSavesItsWeights) {
  const TemporaryFolder folder;
  const auto model = towers();
  for (const char* name : {"a.h5", "a.weights.h5"}) {
    save_weights(*model, folder / name);
    const auto other = towers();
    load_weights(*other, folder / name);
    EXPECT_EQ(values_of(other(Tensors(batch()))), values_of(model(Tensors(batch()))));
  }
  EXPECT_EQ(Hdf5File(folder / "a.h5").string_list("/", "layer_names"), (Names{"z", "f", "o"}));
}

TEST(KerasWeightsTest, AttributesNameTheGroupsOfAModelAsInKeras) {
  const TemporaryFolder folder;
  save_weights(*towers(), folder / "a.weights.h5");
  const Hdf5File file(folder / "a.weights.h5");
  // Attributes in the order of their names. "layers" is one of them and contains the later ones.
  EXPECT_EQ(file.children("/"), (Names{"first", "layers", "vars"}));
  EXPECT_EQ(file.string_attribute("layers/dense/vars", "name"), "z");
  EXPECT_EQ(file.string_attribute("layers/dense_1/vars", "name"), "o");
}

TEST(KerasWeightsTest, GroupsUnderUnknownAttributesAreFoundByTheNamesOfTheirLayers) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.weights.h5");
    for (const auto& [group, name] : {std::pair("dense1", "one"), std::pair("dense2", "two")}) {
      const std::string vars = str(group, "/vars");
      file.create_group(vars);
      file.write_attribute(vars, "name", name, Hdf5Writer::Charset::kUtf8);
    }
    file.write("dense1/vars/0", Tensor::zeros({3, 4}));
    file.write("dense1/vars/1", Tensor::zeros({4}));
    file.write("dense2/vars/0", Tensor::zeros({4, 2}));
    file.write("dense2/vars/1", Tensor::from<float>({7, 8}, {2}));
    file.commit();
  }
  const Sequential model = mlp();
  load_weights(model, folder / "a.weights.h5");
  EXPECT_EQ(values_of(model(Tensors(batch()))), (std::vector<float>{7, 8, 7, 8}));
}

TEST(KerasWeightsTest, TheGroupsOfKeras213AreRead) {
  const TemporaryFolder folder;
  {
    Hdf5Writer file(folder / "a.weights.h5");
    file.write("_layer_checkpoint_dependencies/dense/vars/0", Tensor::zeros({3, 4}));
    file.write("_layer_checkpoint_dependencies/dense/vars/1", Tensor::zeros({4}));
    file.write("_layer_checkpoint_dependencies/dense_1/vars/0", Tensor::zeros({4, 2}));
    file.write("_layer_checkpoint_dependencies/dense_1/vars/1", Tensor::from<double>({7, 8}, {2}));
    file.commit();
  }
  const Sequential model = mlp();
  load_weights(model, folder / "a.weights.h5");
  EXPECT_EQ(values_of(model(Tensors(batch()))), (std::vector<float>{7, 8, 7, 8}));
}

// Keras 2.15 joins the paths of groups with the path separator of the system.
TEST(KerasWeightsTest, GroupsOfKeras2OnWindowsAreRead) {
  for (const char* layers : {"layers", "_layer_checkpoint_dependencies"}) {
    const TemporaryFolder folder;
    {
      Hdf5Writer file(folder / "a.weights.h5");
      const auto dense = [&](const char* name) { return str(layers, "\\", name, "/vars/"); };
      file.write(dense("dense") + "0", Tensor::zeros({3, 4}));
      file.write(dense("dense") + "1", Tensor::zeros({4}));
      file.write(dense("dense_1") + "0", Tensor::zeros({4, 2}));
      file.write(dense("dense_1") + "1", Tensor::from<float>({7, 8}, {2}));
      file.commit();
    }
    const Sequential model = mlp();
    load_weights(model, folder / "a.weights.h5");
    EXPECT_EQ(values_of(model(Tensors(batch()))), (std::vector<float>{7, 8, 7, 8})) << layers;
  }
}

Functional crossed(int64_t projection) {
  const Tensor x = layers::input({.shape = {3}, .name = "x"});
  layers::FeatureCross cross({.name = "cross"});
  if (projection > 0) {
    cross = layers::FeatureCross({.projection_dim = projection, .name = "cross"});
  }
  return Functional({.inputs = x, .outputs = cross(Tensors::list({x, x})), .name = "m"});
}

// keras_rs stores the weights of FeatureCross in two Dense layers: down_proj_dense, without bias,
// and dense.
TEST(KerasWeightsTest, FeatureCrossHasTheGroupsOfKerasRs) {
  const TemporaryFolder folder;
  const Functional model = crossed(2);
  model->get_layer("cross")->weights()[2].assign(Tensor::from<float>({1, 2, 3}, {3}));
  for (const char* name : {"a.weights.h5", "a.keras"}) {
    if (std::string(name).ends_with("keras")) {
      save_model(model, folder / name);
      ZipFile(folder / name).extract("model.weights.h5", folder / "weights");
    } else {
      save_weights(model, folder / "weights.weights.h5");
      std::filesystem::rename(folder / "weights.weights.h5", folder / "weights");
      std::filesystem::copy_file(folder / "weights", folder / name);
    }
    const Hdf5File file(folder / "weights");
    EXPECT_EQ(file.spec("layers/feature_cross/down_proj_dense/vars/0").shape, Shape({3, 2}));
    EXPECT_EQ(file.spec("layers/feature_cross/dense/vars/0").shape, Shape({2, 3}));
    EXPECT_EQ(file.read("layers/feature_cross/dense/vars/1").to_vector<float>(),
              (std::vector<float>{1, 2, 3}));
    EXPECT_EQ(file.children("layers/feature_cross/vars"), Names());
    EXPECT_EQ(file.string_attribute("layers/feature_cross/vars", "name"), "cross");
    const Functional other = crossed(2);
    load_weights(other, folder / name);
    EXPECT_EQ(values_of(other(Tensors(batch()))), values_of(model(Tensors(batch())))) << name;
  }
  EXPECT_THROW(load_weights(crossed(0), folder / "a.weights.h5"), ValueError);
}

// y = x (x W + b) + x, with W the identity and b = (1, 2, 3).
TEST(KerasWeightsTest, FeatureCrossOfKerasRsAndOfEarlierReleasesIsRead) {
  const TemporaryFolder folder;
  const Tensor identity = Tensor::from<float>({1, 0, 0, 0, 1, 0, 0, 0, 1}, {3, 3});
  for (const char* vars : {"layers/feature_cross/dense/vars", "layers/feature_cross/vars",
                           "cross_of_the_model/dense/vars"}) {
    {
      Hdf5Writer file(folder / "a.weights.h5");
      const std::string path = vars;
      const std::string owner =
          path.substr(0, path.find("/dense")) + (absl::StrContains(path, "/dense") ? "/vars" : "");
      file.create_group(owner);
      file.write_attribute(owner, "name", "cross", Hdf5Writer::Charset::kUtf8);
      file.write(str(vars, "/0"), identity);
      file.write(str(vars, "/1"), Tensor::from<float>({1, 2, 3}, {3}));
      file.commit();
    }
    const Functional model = crossed(0);
    load_weights(model, folder / "a.weights.h5");
    EXPECT_EQ(values_of(model(Tensors(Tensor::from<float>({1, -2, 3}, {1, 3})))),
              (std::vector<float>{1 * 2 + 1, -2 * 0 - 2, 3 * 6 + 3}))
        << vars;
  }
}

// y = x W + b; the largest magnitudes of the columns of W are 127 and 254, so that the codes are
// exact.
Sequential quantized_dense() {
  const Dense dense({.units = 2, .name = "d"});
  const Sequential out(
      {.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}), dense}, .name = "q"});
  dense->kernel().assign(Tensor::from<float>({127, 254, -3, 4, 10, -20}, {3, 2}));
  dense->bias().assign(Tensor::from<float>({1, 2}, {2}));
  dense->quantize("int8");
  return out;
}

// Keras stores the kernel, the bias and the scales in this order; earlier releases stored the bias
// first.
TEST(KerasWeightsTest, AQuantizedKernelPrecedesTheBias) {
  const TemporaryFolder folder;
  const Sequential model = quantized_dense();
  save_weights(model, folder / "a.weights.h5");
  const std::string vars = "layers/dense/vars/";
  Tensor kernel, bias, scale;
  {
    const Hdf5File file(folder / "a.weights.h5");
    kernel = file.read(vars + "0");
    bias = file.read(vars + "1");
    scale = file.read(vars + "2");
  }
  EXPECT_EQ(kernel.dtype(), DType::kInt8);
  EXPECT_EQ(values_of(kernel.cast(DType::kFloat32)),
            (std::vector<float>{127, 127, -3, 2, 10, -10}));
  EXPECT_EQ(values_of(bias), (std::vector<float>{1, 2}));
  EXPECT_EQ(scale.shape(), Shape({2}));
  {
    Hdf5Writer file(folder / "b.weights.h5");
    file.create_group(vars.substr(0, vars.size() - 1));
    file.write(vars + "0", bias);
    file.write(vars + "1", kernel);
    file.write(vars + "2", scale);
    file.commit();
  }
  for (const char* name : {"a.weights.h5", "b.weights.h5"}) {
    const Sequential other = quantized_dense();
    std::dynamic_pointer_cast<DenseLayer>(other->get_layer("d").shared())
        ->bias()
        .assign(Tensor::zeros({2}));
    load_weights(other, folder / name);
    EXPECT_EQ(values_of(other(Tensors(batch()))), values_of(model(Tensors(batch())))) << name;
  }
}

Sequential with_lora(float a, float b) {
  const Dense dense({.units = 2, .lora_rank = 1, .name = "d"});
  const Sequential out(
      {.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}), dense}, .name = "l"});
  dense->kernel().assign(Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}));
  dense->bias().assign(Tensor::from<float>({7, 8}, {2}));
  dense->lora_kernel_a().assign(Tensor::full({3, 1}, a));
  dense->lora_kernel_b().assign(Tensor::full({1, 2}, b));
  return out;
}

// With a b = 0.5, y = x (W + 0.5) + b.
TEST(KerasWeightsTest, LoraIsMergedInKeras3FilesAndSeparateInLegacyFiles) {
  const TemporaryFolder folder;
  const Sequential model = with_lora(0.5, 1);
  const Tensor y = model(Tensors(batch())).tensor();
  // (1 + 3 * -2 + 5 * 3) + 0.5 * 2 + 7 and so on
  EXPECT_EQ(values_of(y), (std::vector<float>{18, 21, -2.5, 1.5}));
  save_weights(model, folder / "a.h5");
  save_weights(model, folder / "a.weights.h5");
  {
    const Hdf5File file(folder / "a.h5");
    EXPECT_EQ(file.string_list("d", "weight_names"),
              (Names{"d/bias:0", "d/lora_kernel_a:0", "d/lora_kernel_b:0", "d/kernel:0"}));
    EXPECT_EQ(values_of(file.read("d/d/kernel:0")), (std::vector<float>{1, 2, 3, 4, 5, 6}));
    const Hdf5File merged(folder / "a.weights.h5");
    EXPECT_EQ(values_of(merged.read("layers/dense/vars/0")),
              (std::vector<float>{1.5, 2.5, 3.5, 4.5, 5.5, 6.5}));
    EXPECT_EQ(values_of(merged.read("layers/dense/vars/1")), (std::vector<float>{7, 8}));
  }
  // The layout of earlier releases.
  testing_support::write(
      folder / "old.h5",
      {.layers = {
           {"d",
            {{"d/bias:0", Tensor::from<float>({7, 8}, {2})},
             {"d/kernel:0", Tensor::from<float>({1.5, 2.5, 3.5, 4.5, 5.5, 6.5}, {3, 2})}}}}});
  for (const char* name : {"a.h5", "a.weights.h5", "old.h5"}) {
    const Sequential other = with_lora(2, 3);
    load_weights(other, folder / name);
    EXPECT_EQ(values_of(other(Tensors(batch()))), values_of(y)) << name;
  }
}

// int4 with blocks also has zero points and groups of rows.
TEST(KerasWeightsTest, QuantizedLayersWithLoraKeepTheirBits) {
  const TemporaryFolder folder;
  for (const char* mode : {"int8", "int4"}) {
    const auto make = [&](float bias) {
      const layers::EinsumDense dense({.equation = "ab,bc->ac",
                                       .output_shape = {2},
                                       .bias_axes = "c",
                                       .bias_initializer = "zeros",
                                       .name = "d"});
      const Sequential out(
          {.layers = {Input({.batch_shape = {kUnknown, 3}, .name = "in"}), dense}, .name = "q"});
      dense->bias().assign(Tensor::full({2}, bias));
      dense->quantize(mode);
      dense->enable_lora(1, {}, "ones", "ones");
      return out;
    };
    const Sequential model = make(5);
    save_weights(model, folder / "a.h5", {.overwrite = true});
    const Sequential other = make(1);
    load_weights(other, folder / "a.h5");
    EXPECT_EQ(values_of(other(Tensors(batch()))), values_of(model(Tensors(batch())))) << mode;
    save_weights(model, folder / "a.weights.h5", {.overwrite = true});
    const Hdf5File file(folder / "a.weights.h5");
    const std::string vars = "layers/einsum_dense/vars/";
    EXPECT_EQ(file.spec(vars + "0").dtype, DType::kInt8);
    EXPECT_EQ(values_of(file.read(vars + "1")), (std::vector<float>{5, 5}));
    load_weights(other, folder / "a.weights.h5");
    save_weights(other, folder / "b.weights.h5", {.overwrite = true});
    EXPECT_EQ(values_of(Hdf5File(folder / "b.weights.h5").read(vars + "0").cast(DType::kFloat32)),
              values_of(file.read(vars + "0").cast(DType::kFloat32)));
  }
}

Functional gated() {
  const Tensor x = layers::input({.shape = {3, 4}, .name = "x"});
  const layers::MultiHeadAttention one({.num_heads = 2, .key_dim = 2, .use_gate = true});
  const layers::MultiHeadAttention two({.num_heads = 2, .key_dim = 2, .use_gate = true});
  const Tensor y = one(Tensors::list({x, x})).tensor();
  return Functional({.inputs = x, .outputs = two(Tensors::list({y, y}))});
}

TEST(KerasWeightsTest, TheGateOfMultiHeadAttentionIsNamedAsInKeras) {
  const TemporaryFolder folder;
  const Functional model = gated(), other = gated();
  save_weights(model, folder / "a.weights.h5");
  const Hdf5File file(folder / "a.weights.h5");
  EXPECT_EQ(file.children("layers/multi_head_attention_1/_gate_dense/vars"), (Names{"0", "1"}));
  EXPECT_FALSE(file.has("layers/multi_head_attention_1/gate_dense"));
  load_weights(other, folder / "a.weights.h5");
  const Tensor x = Tensor::from<float>({1, -2, 3, 4, 5, -6, 7, 8, 9, 1, 2, 3}, {1, 3, 4});
  EXPECT_EQ(values_of(other(Tensors(x))), values_of(model(Tensors(x))));
}

// Keras before 3.10 stores Nadam's product before the slots: after a step it is
// 0.9 (1 - 0.96 / 2) = 0.468.
TEST(KerasWeightsTest, TheProductOfNadamIsReadBeforeAndAfterTheSlots) {
  const TemporaryFolder folder;
  const Sequential model = mlp(1);
  model->compile({.optimizer = "nadam", .loss = "mse"});
  model->train_on_batch(Tensors(batch()), Tensors(Tensor::zeros({2, 1})));
  save_weights(model, folder / "a.weights.h5");
  std::vector<Tensor> state;
  {
    const Hdf5File file(folder / "a.weights.h5");
    const auto n = static_cast<int>(file.children("optimizer/vars").size());
    for (int i = 0; i < n; ++i) state.push_back(file.read(str("optimizer/vars/", i)));
    ASSERT_EQ(n, 2 + 2 * 4 + 1);
    EXPECT_NEAR(state.back().cast(DType::kFloat64).item<double>(), 0.468, 1e-6);
    Hdf5Writer old(folder / "b.weights.h5");
    for (const char* vars : {"layers/dense/vars/", "layers/dense_1/vars/"}) {
      for (const char* i : {"0", "1"}) old.write(str(vars, i), file.read(str(vars, i)));
    }
    old.write("optimizer/vars/0", state[0]);
    old.write("optimizer/vars/1", state[1]);
    old.write("optimizer/vars/2", state.back());
    for (int i = 2; i + 1 < n; ++i) old.write(str("optimizer/vars/", i + 1), state[i]);
    old.commit();
  }
  std::vector<std::vector<float>> after;
  for (const char* name : {"a.weights.h5", "b.weights.h5"}) {
    const Sequential other = mlp(1);
    other->compile({.optimizer = "nadam", .loss = "mse"});
    load_weights(other, folder / name);
    EXPECT_EQ(other->optimizer()->iterations(), 1);
    other->train_on_batch(Tensors(batch()), Tensors(Tensor::zeros({2, 1})));
    after.push_back(values_of(other(Tensors(batch()))));
  }
  model->train_on_batch(Tensors(batch()), Tensors(Tensor::zeros({2, 1})));
  EXPECT_EQ(after[0], values_of(model(Tensors(batch()))));
  EXPECT_EQ(after[1], after[0]);
}

// The groups of an HDF5 file tell the layouts apart, whatever its name is.
TEST(KerasWeightsTest, TheContentsTellTheLayout) {
  const TemporaryFolder folder;
  const Sequential model = mlp();
  save_weights(model, folder / "a.h5");
  save_weights(model, folder / "a.weights.h5");
  save_model(model, folder / "a.keras");
  std::filesystem::rename(folder / "a.h5", folder / "legacy.keras");
  std::filesystem::rename(folder / "a.weights.h5", folder / "current.h5");
  std::filesystem::rename(folder / "a.keras", folder / "archive.h5");
  for (const char* name : {"legacy.keras", "current.h5", "archive.h5"}) {
    const Sequential other = mlp();
    load_weights(other, folder / name);
    EXPECT_EQ(values_of(other(Tensors(batch()))), values_of(model(Tensors(batch())))) << name;
  }
}

}  // namespace keel::keras_weights_test
