// Tests files in the form of Keras 1 and 2: their exact configs, and the numbers that follow from
// the formulas of those versions.
#include <keel/savedmodel/keras/dialect/keras_dialect.h>

#include <algorithm>
#include <cmath>
#include <hdf5.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/metrics.h>
#include <keel/savedmodel/hdf5/hdf5_file.h>
#include <keel/savedmodel/keras/internal/zip_file.h>
#include <keel/savedmodel/model_json.h>
#include <keel/savedmodel/saved_model.h>

#include "tests/savedmodel/keras/legacy_file.h"
#include "tests/support/expectations.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/tensors.h"

namespace keel::keras_dialect_test {

using layers::Dense;
using testing::HasSubstr;
using testing_support::expect_near;
using testing_support::floats;
using testing_support::StoredModel;
using testing_support::TemporaryFolder;
using testing_support::values_of;
using testing_support::write;
using Input = LayerHandle<InputLayer>;
using Floats = std::vector<float>;
// Config of a Dense layer with one weight 1, no bias and an activation, as written by Keras 2.2.4.
std::string dense_config(const std::string& activation) {
  return R"({"class_name": "Sequential", "config": {"name": "sequential_1", "layers": [
      {"class_name": "Dense", "config": {"name": "dense_1", "trainable": true,
       "batch_input_shape": [null, 1], "dtype": "float32", "units": 1,
       "activation": )" +
         activation + R"(, "use_bias": false,
       "kernel_initializer": {"class_name": "VarianceScaling", "config": {"scale": 1.0,
          "mode": "fan_avg", "distribution": "uniform", "seed": null}},
       "bias_initializer": {"class_name": "Zeros", "config": {}},
       "kernel_regularizer": null, "bias_regularizer": null, "activity_regularizer": null,
       "kernel_constraint": null, "bias_constraint": null}}]}})";
}

StoredModel dense_model(const std::string& version, const std::string& activation) {
  return {.version = version,
          .config = dense_config(activation),
          .layers = {{"dense_1", {{"dense_1/kernel:0", floats({1}, {1, 1})}}}}};
}

const Tensor kInputs = Tensor::from<float>({-3, -1, 0, 1, 2.75, 3}, {6, 1});

// Keras 2: max(0, min(1, 0.2 x + 0.5)).
const Floats kOldHardSigmoid = {0, .3F, .5F, .7F, 1, 1};
// Keras 3: max(0, min(1, x / 6 + 1 / 2)).
const Floats kHardSigmoid = {0, 1 / 3.0F, .5F, 2 / 3.0F, 5.75F / 6, 1};

TEST(KerasDialectTest, HardSigmoidMatchesTheVersionThatWroteTheFile) {
  const TemporaryFolder folder;
  for (const char* form :
       {R"("hard_sigmoid")", R"({"class_name": "function", "config": "hard_sigmoid"})"}) {
    for (const char* version : {"1.2.2", "2.0.8", "2.2.4-tf", "2.15.0", "2.18.0", ""}) {
      write(folder / "a.h5", dense_model(version, form));
      expect_near(values_of(load_model(folder / "a.h5")(kInputs)), kOldHardSigmoid,
                  {.absolute = 2e-6});
    }
    write(folder / "a.h5", dense_model("3.9.2", form));
    expect_near(values_of(load_model(folder / "a.h5")(kInputs)), kHardSigmoid, {.absolute = 2e-6});
  }
}

// Keras 3 has Rescaling and ReLU: relu(0.2 x + 0.5) up to 1.
TEST(KerasDialectTest, TheOldHardSigmoidIsWrittenInLayersOfKeras3) {
  const TemporaryFolder folder;
  write(folder / "old.h5", dense_model("2.2.4", R"("hard_sigmoid")"));
  const ModelHandle model = load_model(folder / "old.h5");
  for (const char* name : {"new.h5", "new.keras"}) {
    save_model(model, folder / name);
    const ModelHandle again = load_model(folder / name);
    EXPECT_EQ(values_of(again(kInputs)), values_of(model(kInputs))) << name;
    save_model(again, folder / "twice.h5");
    EXPECT_EQ(values_of(load_model(folder / "twice.h5")(kInputs)), values_of(model(kInputs)))
        << name;
  }
  const Config config = parse_json(ZipFile(folder / "new.keras").read("config.json", 1 << 20));
  const Config& activation = config["config"]["layers"].items()[1]["config"]["activation"];
  EXPECT_EQ(activation["module"].string(), "keras");
  EXPECT_EQ(activation["class_name"].string(), "Sequential");
  const Config::List& layers = activation["config"]["layers"].items();
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers[0]["module"].string(), "keras.layers");
  EXPECT_EQ(layers[0]["class_name"].string(), "Rescaling");
  EXPECT_EQ(layers[0]["config"]["scale"].number(), 0.2);
  EXPECT_EQ(layers[0]["config"]["offset"].number(), 0.5);
  EXPECT_EQ(layers[1]["class_name"].string(), "ReLU");
  EXPECT_EQ(layers[1]["config"]["max_value"].number(), 1);
}

TEST(KerasDialectTest, ANewHardSigmoidIsSavedAsThatOfKeras3) {
  const TemporaryFolder folder;
  const Sequential model(
      {.layers = {Input({.batch_shape = {kUnknown, 1}}), Dense({.units = 1,
                                                                .activation = "hard_sigmoid",
                                                                .use_bias = false,
                                                                .kernel_initializer = "ones"})}});
  expect_near(values_of(model(Tensors(kInputs))), kHardSigmoid, {.absolute = 2e-6});
  for (const char* name : {"a.h5", "a.keras"}) {
    save_model(model, folder / name);
    EXPECT_EQ(values_of(load_model(folder / name)(kInputs)), values_of(model(Tensors(kInputs))))
        << name;
  }
}

// The form of earlier releases of this library: "2.15.0", and InputLayers without "sparse".
TEST(KerasDialectTest, FilesOfEarlierReleasesKeepTheirHardSigmoid) {
  const TemporaryFolder folder;
  StoredModel model = dense_model("2.15.0", R"("hard_sigmoid")");
  model.config =
      R"({"class_name": "Sequential", "config": {"name": "s", "trainable": true, "layers": [
      {"class_name": "InputLayer", "config": {"batch_input_shape": [null, 1], "dtype": "float32",
        "name": "x"}},
      {"class_name": "Dense", "config": {"name": "dense_1", "trainable": true, "dtype": "float32",
        "units": 1, "activation": "hard_sigmoid", "use_bias": false}}]}})";
  write(folder / "a.h5", model);
  expect_near(values_of(load_model(folder / "a.h5")(kInputs)), kHardSigmoid, {.absolute = 2e-6});
}

// An LSTM with one unit, with the input weights 1, 2, 3, 4 for the gates i, f, c, o, zero recurrent
// weights and no bias. Starting from a zero state, after an input x: c = hs(x) tanh(3 x), and the
// output is hs(4 x) tanh(c), where hs(x) = 0.2 x + 0.5 in [0, 1].
TEST(KerasDialectTest, GatesOfRecurrentLayersUseTheOldHardSigmoid) {
  const TemporaryFolder folder;
  const StoredModel model = {
      .version = "2.2.4",
      .config = R"({"class_name": "Sequential", "config": {"name": "s", "layers": [
        {"class_name": "LSTM", "config": {"name": "lstm_1", "trainable": true,
          "batch_input_shape": [null, 1, 1], "dtype": "float32", "return_sequences": false,
          "return_state": false, "go_backwards": false, "stateful": false, "unroll": false,
          "units": 1, "activation": "tanh", "recurrent_activation": "hard_sigmoid",
          "use_bias": false, "kernel_regularizer": null, "recurrent_regularizer": null,
          "bias_regularizer": null, "activity_regularizer": null, "kernel_constraint": null,
          "recurrent_constraint": null, "bias_constraint": null, "unit_forget_bias": true,
          "dropout": 0.0, "recurrent_dropout": 0.0, "implementation": 1}}]}})",
      .layers = {{"lstm_1",
                  {{"lstm_1/kernel:0", floats({1, 2, 3, 4}, {1, 4})},
                   {"lstm_1/recurrent_kernel:0", floats({0, 0, 0, 0}, {1, 4})}}}}};
  write(folder / "a.h5", model);
  const auto hs = [](double x) { return std::clamp(0.2 * x + 0.5, 0.0, 1.0); };
  Floats expected;
  const Floats inputs = {-.5F, .25F, .5F};
  for (const float x : inputs) {
    expected.push_back(static_cast<float>(hs(4 * x) * std::tanh(hs(x) * std::tanh(3.0 * x))));
  }
  const ModelHandle read = load_model(folder / "a.h5");
  expect_near(values_of(read(floats(inputs, {3, 1, 1}))), expected, {.absolute = 2e-6});
  save_model(read, folder / "b.keras");
  EXPECT_EQ(values_of(load_model(folder / "b.keras")(floats(inputs, {3, 1, 1}))),
            values_of(read(floats(inputs, {3, 1, 1}))));
}

// Keras before 2.1.3 did not write reset_after, and applied the reset gate before the product: h =
// (1 - z) tanh(r h U) + z h with x = 0 and no bias. Only a second step shows the difference: after
// the first step, h = .5 tanh(x W).
TEST(KerasDialectTest, AGruWithoutResetAfterIsRead) {
  const TemporaryFolder folder;
  const StoredModel model = {
      .version = "2.0.6",
      .config = R"({"class_name": "Sequential", "config": [
        {"class_name": "GRU", "config": {"name": "gru_1", "trainable": true,
          "batch_input_shape": [null, 2, 1], "dtype": "float32", "return_sequences": false,
          "go_backwards": false, "stateful": false, "unroll": false, "units": 2,
          "activation": "tanh", "recurrent_activation": "sigmoid", "use_bias": false,
          "dropout": 0.0, "recurrent_dropout": 0.0, "implementation": 0}}]})",
      .layers = {
          {"gru_1",
           {{"gru_1/kernel:0", floats({0, 0, 0, 1, 1, -1}, {1, 6})},
            {"gru_1/recurrent_kernel:0", floats({0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 3, 4}, {2, 6})}}}}};
  write(folder / "a.h5", model);
  // The gates of the first step: z = .5, r irrelevant; h = .5 tanh((1, -1) x).
  const double x0 = .8, x1 = .6;
  const double h[] = {.5 * std::tanh(x0), .5 * std::tanh(-x0)};
  // In the second step r = (sigmoid(0), sigmoid(x1)), z = .5.
  const double r[] = {.5, 1 / (1 + std::exp(-x1))};
  const double g[] = {r[0] * h[0], r[1] * h[1]};
  const double candidate[] = {std::tanh(x1 + g[0] * 1 + g[1] * 3),
                              std::tanh(-x1 + g[0] * 2 + g[1] * 4)};
  expect_near(values_of(load_model(folder / "a.h5")(floats({.8F, .6F}, {1, 2, 1}))),
              {static_cast<float>(.5 * h[0] + .5 * candidate[0]),
               static_cast<float>(.5 * h[1] + .5 * candidate[1])},
              {.absolute = 2e-6});
}

// Keras 2.0 wrote the slope of a LeakyReLU as an array.
TEST(KerasDialectTest, SettingsThatAreArraysAreRead) {
  const TemporaryFolder folder;
  write(folder / "a.h5", {.version = "2.0.2",
                          .config = R"({"class_name": "Sequential", "config": [
            {"class_name": "LeakyReLU", "config": {"name": "leaky_re_lu_1", "trainable": true,
             "batch_input_shape": [null, 1], "dtype": "float32",
             "alpha": {"type": "ndarray", "value": 0.25}}}]})",
                          .layers = {{"leaky_re_lu_1"}}});
  EXPECT_EQ(values_of(load_model(folder / "a.h5")(floats({-2, 2}, {2, 1}))), (Floats{-.5F, 2}));
}

TEST(KerasDialectTest, TheInputOfAnOldSequentialAcceptsAnyName) {
  const TemporaryFolder folder;
  write(folder / "a.h5", dense_model("2.2.4", R"("linear")"));
  const ModelHandle model = load_model(folder / "a.h5");
  EXPECT_EQ(dynamic_cast<const SequentialModel&>(*model).input_name(), "dense_1_input");
  const Signatures served = signatures(folder / "a.h5");
  EXPECT_EQ(served.at("serving_default").inputs().begin()->first, "dense_1_input");
  for (const char* name : {"dense_1_input", "dense_7_input", "x"}) {
    const Tensors out =
        served.at("serving_default")(Tensors::dict({{name, Tensors(floats({4}, {1, 1}))}}));
    EXPECT_EQ(out.entries().begin()->second.tensor().to_vector<float>(), Floats{4});
  }
}

// The training config of Keras 2.2.4 for compile(SGD(lr=0.25, decay=0.0), ...): "lr", "decay",
// nulls and the names of that version.
TEST(KerasDialectTest, TrainingConfigsBeforeKeras23AreRead) {
  const TemporaryFolder folder;
  StoredModel stored = dense_model("2.2.4", R"("linear")");
  const auto with = [&](const std::string& optimizer) {
    stored.training = R"({"optimizer_config": )" + optimizer +
                      R"(, "loss": "mean_squared_error", "metrics": ["acc"],
                          "sample_weight_mode": null, "loss_weights": null})";
    write(folder / "a.h5", stored);
    return load_model(folder / "a.h5");
  };
  const ModelHandle sgd = with(R"({"class_name": "SGD", "config": {"lr": 0.25, "momentum": 0.0,
                                   "decay": 0.0, "nesterov": false}})");
  ASSERT_TRUE(sgd->compiled());
  EXPECT_EQ(sgd->optimizer()->learning_rate(), 0.25);
  // One step on x = 2, y = 1 with w = 1: the loss is 1, its gradient 2 (w x - y) x = 4.
  sgd->fit(floats({2}, {1, 1}), floats({1}, {1, 1}), {.epochs = 1});
  EXPECT_EQ(sgd->weights()[0].read().item<float>(), 0);
  const char* const kOthers[] = {
      R"({"class_name": "Adam", "config": {"lr": 0.5, "beta_1": 0.9, "beta_2": 0.999, "decay": 0.0,
          "epsilon": null, "amsgrad": false}})",
      R"({"class_name": "RMSprop", "config": {"lr": 0.5, "rho": 0.9, "decay": 0.0, "epsilon": 1e-07}})",
      R"({"class_name": "Adagrad", "config": {"lr": 0.5, "decay": 0.0, "epsilon": 1e-07}})",
      R"({"class_name": "Adadelta", "config": {"lr": 0.5, "rho": 0.95, "decay": 0.0, "epsilon": null}})",
      R"({"class_name": "Adamax", "config": {"lr": 0.5, "beta_1": 0.9, "beta_2": 0.999, "decay": 0.0,
          "epsilon": null}})",
      R"({"class_name": "Nadam", "config": {"lr": 0.5, "beta_1": 0.9, "beta_2": 0.999,
          "epsilon": null, "schedule_decay": 0.004}})"};
  for (const char* optimizer : kOthers) {
    EXPECT_EQ(with(optimizer)->optimizer()->learning_rate(), 0.5) << optimizer;
  }
}

std::string functional_config(const std::string& first, const std::string& second) {
  return R"({"class_name": "Model", "config": {"name": "m/n", "layers": [
      {"name": "in/x", "class_name": "InputLayer", "config": {"batch_input_shape": [null, 1],
        "dtype": "float32", "sparse": false, "name": "in/x"}, "inbound_nodes": []},
      {"name": ")" +
         first + R"(", "class_name": "Dense", "config": {"name": ")" + first +
         R"(", "units": 1, "activation": "linear", "use_bias": false},
        "inbound_nodes": [[["in/x", 0, 0, {}]]]},
      {"name": ")" +
         second + R"(", "class_name": "Dense", "config": {"name": ")" + second +
         R"(", "units": 1, "activation": "linear", "use_bias": false},
        "inbound_nodes": [[[")" +
         first + R"(", 0, 0, {}]]]}],
      "input_layers": [["in/x", 0, 0]], "output_layers": [[")" +
         second + R"(", 0, 0]]}})";
}

TEST(KerasDialectTest, SlashesInLayerNamesAreRemoved) {
  const TemporaryFolder folder;
  const StoredModel stored = {
      .version = "2.4.0",
      .config = functional_config("block/dense", "block_dense"),
      .layers = {{"in/x"},
                 {"block/dense", {{"block/dense/kernel:0", floats({2}, {1, 1})}}},
                 {"block_dense", {{"block_dense/kernel:0", floats({5}, {1, 1})}}}}};
  write(folder / "a.h5", stored);
  const ModelHandle model = load_model(folder / "a.h5");
  EXPECT_EQ(values_of(model(floats({3}, {1, 1}))), Floats{30});
  EXPECT_EQ(model->name(), "m_n");
  std::vector<std::string> names;
  for (const auto& layer : model->layers()) names.push_back(layer->name());
  EXPECT_EQ(names, (std::vector<std::string>{"in_x", "block_dense_1", "block_dense"}));
}

// Keras 3 allows "\\" in names, which Windows also writes between the groups of a file.
TEST(KerasDialectTest, BackslashesInLayerNamesAreKept) {
  const TemporaryFolder folder;
  const Tensor x = layers::input({.shape = {1}, .name = "in\\x"});
  const Tensor y = Dense({.units = 1, .use_bias = false, .name = "block\\dense"})(x);
  const Functional model(
      {.inputs = x,
       .outputs = Dense({.units = 1, .use_bias = false, .name = "block_dense"})(y),
       .name = "m\\n"});
  model->weights()[0].assign(floats({2}, {1, 1}));
  model->weights()[1].assign(floats({5}, {1, 1}));
  for (const char* name : {"a.h5", "a.keras"}) {
    save_model(model, folder / name);
    const ModelHandle same = load_model(folder / name);
    EXPECT_EQ(values_of(same(floats({3}, {1, 1}))), Floats{30}) << name;
    EXPECT_EQ(same->layers()[1]->name(), "block\\dense");
    EXPECT_EQ(same->name(), "m\\n");
  }
  for (const char* name : {"a.weights.h5", "b.h5"}) {
    save_weights(*model, folder / name);
    const ModelHandle other = load_model(folder / "a.keras");
    for (const Variable& weight : other->weights()) weight.assign(floats({0}, {1, 1}));
    load_weights(*other, folder / name);
    EXPECT_EQ(values_of(other(floats({3}, {1, 1}))), Floats{30}) << name;
  }
}

// Keras 2.13 to 2.15 allow "/" in names, also in archives.
TEST(KerasDialectTest, SlashesInLayerNamesOfArchivesAreRemoved) {
  const TemporaryFolder folder;
  const Tensor x = layers::input({.shape = {1}, .name = "x"});
  const Tensor y = Dense({.units = 1, .use_bias = false, .name = "block%dense"})(x);
  const Functional model({.inputs = x, .outputs = y, .name = "m"});
  model->weights()[0].assign(floats({7}, {1, 1}));
  save_model(model, folder / "a.keras");
  const ZipFile archive(folder / "a.keras");
  {
    ZipWriter out(folder / "b.keras");
    for (const std::string& entry : archive.entries()) {
      std::string text = archive.read(entry, 1 << 20);
      if (entry == "config.json") {
        for (size_t at = 0; (at = text.find('%', at)) != std::string::npos;) text[at] = '/';
      }
      out.add(entry, std::move(text));
    }
    out.finish();
  }
  const ModelHandle read = load_model(folder / "b.keras");
  EXPECT_EQ(read->layers()[1]->name(), "block_dense");
  EXPECT_EQ(values_of(read(floats({3}, {1, 1}))), Floats{21});
}

// The weight names of Keras 1. Its weights files have no version.
TEST(KerasDialectTest, WeightsOfKeras1AreFoundByTheNamesOfTheirLayers) {
  const TemporaryFolder folder;
  write(folder / "a.h5",
        {.version = "",
         .layers = {{"other", {{"other_W", floats({1, 1}, {1, 2})}}},
                    {"hidden/dense_2",
                     {{"dense_2_W", floats({7}, {1, 1})}, {"dense_2_b", floats({.5F}, {1})}}}}});
  const auto model_of = [](const char* name) {
    return Sequential(
        {.layers = {Input({.batch_shape = {kUnknown, 1}}), Dense({.units = 1, .name = "own"}),
                    Dense({.units = 1, .name = name})}});
  };
  const Sequential model = model_of("hidden_dense_2");
  const Tensor before = model->weights()[0].read().clone();
  const std::vector<std::string> left = load_weights(model, folder / "a.h5", {.by_name = true});
  ASSERT_EQ(left.size(), 1U);
  EXPECT_THAT(left[0], HasSubstr("layer 'own' is not in"));
  const std::vector<Variable> weights = model->get_layer("hidden_dense_2")->weights();
  EXPECT_EQ(weights[0].read().item<float>(), 7);
  EXPECT_EQ(weights[1].read().item<float>(), .5F);
  EXPECT_EQ(model->weights()[0].read().to_vector<float>(), before.to_vector<float>());
  EXPECT_THROW(load_weights(model_of("nothing"), folder / "a.h5", {.by_name = true}), ValueError);
}

// Links with non-ASCII names turn an old-style group into a group of link messages. More than eight
// of them turn it into a group with a heap and a B-tree. h5py marks such names as UTF-8.
void rename_links(const std::string& path, const std::string& group,
                  const std::vector<std::pair<std::string, std::string>>& names) {
  const hid_t file = H5Fopen(path.c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
  const hid_t create = H5Pcreate(H5P_LINK_CREATE);
  H5Pset_char_encoding(create, H5T_CSET_UTF8);
  for (const auto& [from, to] : names) {
    ASSERT_GE(H5Lmove(file, (group + "/" + from).c_str(), file, (group + "/" + to).c_str(), create,
                      H5P_DEFAULT),
              0);
  }
  H5Pclose(create);
  H5Fclose(file);
}

class NamesBeyondAscii : public testing::TestWithParam<int> {};

TEST_P(NamesBeyondAscii, AreRead) {
  const TemporaryFolder folder;
  const int count = GetParam();
  std::string layers;
  StoredModel stored = {.version = "2.4.0"};
  std::vector<std::string> all;
  std::vector<std::pair<std::string, std::string>> names;
  for (int i = 0; i < count; ++i) {
    const std::string ascii = str("layer", i), utf8 = str("Schicht_ä_", i);
    layers += str(i == 0 ? "" : ", ", R"({"class_name": "Dense", "config": {"name": ")", utf8,
                  R"(", "units": 1, "use_bias": false)",
                  i == 0 ? R"(, "batch_input_shape": [null, 1])" : "", "}}");
    stored.layers.push_back({ascii, {{"kernel:0", floats({i == 0 ? 3.0F : 1.0F}, {1, 1})}}});
    names.emplace_back(ascii, utf8);
    all.push_back(utf8);
  }
  stored.config =
      R"({"class_name": "Sequential", "config": {"name": "s", "layers": [)" + layers + "]}}";
  write(folder / "a.h5", stored);
  rename_links(folder / "a.h5", "/model_weights", names);
  {
    // The list of layers still contains the old names.
    const hid_t file = H5Fopen((folder / "a.h5").c_str(), H5F_ACC_RDWR, H5P_DEFAULT);
    H5Adelete_by_name(file, "/model_weights", "layer_names", H5P_DEFAULT);
    const hid_t type = H5Tcopy(H5T_C_S1);
    H5Tset_size(type, H5T_VARIABLE);
    const hsize_t size = all.size();
    const hid_t space = H5Screate_simple(1, &size, nullptr);
    const hid_t attribute = H5Acreate_by_name(file, "/model_weights", "layer_names", type, space,
                                              H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
    std::vector<const char*> texts;
    for (const std::string& name : all) texts.push_back(name.c_str());
    H5Awrite(attribute, type, texts.data());
    H5Aclose(attribute);
    H5Sclose(space);
    H5Tclose(type);
    H5Fclose(file);
  }
  const ModelHandle model = load_model(folder / "a.h5");
  EXPECT_EQ(values_of(model(floats({2}, {1, 1}))), Floats{6});
  EXPECT_EQ(model->layers()[0]->name(), "Schicht_ä_0");
  for (const char* name : {"b.h5", "b.keras"}) {
    save_model(model, folder / name);
    EXPECT_EQ(values_of(load_model(folder / name)(floats({2}, {1, 1}))), Floats{6}) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(Counts, NamesBeyondAscii, testing::Values(1, 5, 9, 60, 200));

// Keras 3 passes the list ["x"] of a model's outputs unchanged to the next layer of a Sequential,
// which refuses it.
TEST(KerasDialectTest, AModelInASequentialHasATensorAsItsOutput) {
  const TemporaryFolder folder;
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Functional inner(
      {.inputs = x, .outputs = Dense({.units = 3, .name = "inside"})(x), .name = "inner"});
  const Sequential model({.layers = {Input({.batch_shape = {kUnknown, 2}, .name = "in"}), inner,
                                     Dense({.units = 1, .name = "last"})},
                          .name = "outer"});
  save_model(model, folder / "a.h5");
  const Config config = parse_json(Hdf5File(folder / "a.h5").string_attribute("/", "model_config"));
  const Config& written = config["config"]["layers"].items()[1];
  EXPECT_EQ(written["class_name"].string(), "Functional");
  EXPECT_EQ(to_json(written["config"]["output_layers"]), R"(["inside", 0, 0])");
  EXPECT_EQ(to_json(written["config"]["input_layers"]), R"(["x", 0, 0])");
  const Tensor batch = floats({1, 2}, {1, 2});
  EXPECT_EQ(values_of(load_model(folder / "a.h5")(batch)), values_of(model(Tensors(batch))));
}

// compile_config for loss and metric objects as written by Keras 3.8, and training_config as
// written by Keras 2.4.
TEST(KerasDialectTest, WrappedFunctionsAndObjectsOfCompileAreRead) {
  const TemporaryFolder folder;
  const auto compiled = [&](const std::string& loss, const std::string& metrics) {
    StoredModel stored = dense_model("2.4.0", R"("linear")");
    stored.training =
        R"({"optimizer_config": {"class_name": "SGD", "config": {"learning_rate": 0.1}},
                          "loss_weights": null, "loss": )" +
        loss + R"(, "metrics": )" + metrics + "}";
    write(folder / "a.h5", stored);
    return load_model(folder / "a.h5");
  };
  const char* const kMetrics[] = {
      R"([[{"class_name": "MeanMetricWrapper",
            "config": {"name": "hits", "dtype": "float32", "fn": "binary_accuracy"}}]])",
      R"([{"module": "keras.metrics", "class_name": "MeanMetricWrapper", "config": {"name": "hits",
          "dtype": {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"},
          "registered_name": null}, "fn": {"module": "builtins", "class_name": "function",
          "config": "binary_accuracy", "registered_name": "function"}}, "registered_name": null}])"};
  const char* const kLosses[] = {
      R"({"class_name": "BinaryCrossentropy", "config": {"reduction": "auto",
          "name": "binary_crossentropy", "from_logits": true, "label_smoothing": 0}})",
      R"({"module": "keras.losses", "class_name": "BinaryCrossentropy", "config": {
          "name": "binary_crossentropy", "reduction": "sum_over_batch_size", "from_logits": true,
          "label_smoothing": 0.0, "axis": -1}, "registered_name": null})",
      R"({"class_name": "LossFunctionWrapper", "config": {"reduction": "auto", "name": "loss",
          "from_logits": true, "fn": {"module": "builtins", "class_name": "function",
          "config": "binary_crossentropy", "registered_name": "function"}}})"};
  // The logit is 2 for label 1: log(1 + e^-2). The prediction is above 0.5.
  for (const char* metrics : kMetrics) {
    for (const char* loss : kLosses) {
      const ModelHandle model = compiled(loss, metrics);
      const Logs logs = model->evaluate(floats({2}, {1, 1}), floats({1}, {1, 1}));
      EXPECT_NEAR(logs.at("loss"), std::log1p(std::exp(-2.0)), 1e-6) << loss;
      EXPECT_EQ(logs.at("hits"), 1) << metrics;
    }
  }
}

TEST(KerasDialectTest, ABinaryAccuracyOfLogitsIsRead) {
  const TemporaryFolder folder;
  StoredModel stored = dense_model("2.4.0", R"("linear")");
  stored.training = R"({"optimizer_config": {"class_name": "SGD", "config": {"learning_rate": 0.1}},
      "loss_weights": null, "loss": "mse", "metrics": [{"class_name": "BinaryAccuracy",
      "config": {"name": "hits", "dtype": "float32", "threshold": 0.0}}]})";
  write(folder / "a.h5", stored);
  // The logits .25 and -.25 are correct for the labels 1 and 0; as a probability, .25 would not be
  // above 0.5.
  const Logs logs =
      load_model(folder / "a.h5")->evaluate(floats({.25F, -.25F}, {2, 1}), floats({1, 0}, {2, 1}));
  EXPECT_EQ(logs.at("hits"), 1);
}

// A graph of Keras 3 with one Dropout layer whose call has an argument `training`.
ModelHandle dropout_of(const std::string& version, const std::string& training) {
  const std::string graph = R"({"module": "keras.src.models.functional", "class_name": "Functional",
    "registered_name": "Functional", "config": {"name": "m", "layers": [
      {"module": "keras.layers", "class_name": "InputLayer", "config": {"batch_shape": [null, 64],
        "dtype": "float32", "name": "x"}, "name": "x", "inbound_nodes": []},
      {"module": "keras.layers", "class_name": "Dropout", "config": {"name": "d", "rate": 0.5,
        "seed": 1}, "name": "d", "inbound_nodes": [{"args": [{"class_name": "__keras_tensor__",
        "config": {"shape": [null, 64], "dtype": "float32", "keras_history": ["x", 0, 0]}}],
        "kwargs": {"training": )" +
                            training + R"(}}]}],
    "input_layers": [["x", 0, 0]], "output_layers": [["d", 0, 0]]})";
  return model_from_json(graph +
                         (version.empty() ? "}" : R"(, "keras_version": ")" + version + "\"}"));
}

// Returns true if the model sets some of 64 ones to 0.
bool drops(const ModelHandle& model, bool training) {
  const Tensor y = model(Tensor::from(Floats(64, 1), {1, 64}), {.training = training});
  return std::ranges::count(y.to_vector<float>(), 0.F) > 0;
}

TEST(KerasDialectTest, FitAndPredictDecideWhetherLayersOfKeras30To315Train) {
  for (const char* version : {"3.0.0", "3.9.2", "3.15.1", ""}) {
    for (const char* recorded : {"true", "false", "null"}) {
      SCOPED_TRACE(str(version, ' ', recorded));
      const ModelHandle model = dropout_of(version, recorded);
      EXPECT_FALSE(drops(model, false));
      EXPECT_TRUE(drops(model, true));
    }
  }
}

TEST(KerasDialectTest, LaterVersionsRecordOnlyWhatTheCallerPassed) {
  const auto expect_obeyed = [](const ModelHandle& always, const ModelHandle& never) {
    EXPECT_TRUE(drops(always, false));
    EXPECT_TRUE(drops(always, true));
    EXPECT_FALSE(drops(never, true));
  };
  const ModelHandle always = dropout_of("3.16.0", "true"), never = dropout_of("3.16.0", "false");
  expect_obeyed(always, never);
  EXPECT_TRUE(drops(dropout_of("4.0.0", "true"), false));
  // The files that this library writes keep what the caller passed.
  const TemporaryFolder folder;
  for (const char* suffix : {".keras", ".h5"}) {
    save_model(always, folder / str("always", suffix));
    save_model(never, folder / str("never", suffix));
    expect_obeyed(load_model(folder / str("always", suffix)),
                  load_model(folder / str("never", suffix)));
  }
  expect_obeyed(model_from_json(to_json(always)), model_from_json(to_json(never)));
}

}  // namespace keel::keras_dialect_test
