#include <algorithm>

#include "gtest/gtest.h"

#include "autodiff/ops.h"
#include "layers/attention/attention.h"
#include "layers/attention/grouped_query_attention.h"
#include "layers/attention/multi_head_attention.h"
#include "layers/core/dense.h"
#include "layers/core/identity.h"
#include "layers/functional.h"
#include "layers/interaction/feature_cross.h"
#include "layers/merging/concatenate.h"
#include "layers/merging/merge.h"
#include "layers/preprocessing/category_encoding.h"
#include "layers/recurrent/gru.h"
#include "layers/recurrent/gru_cell.h"
#include "layers/recurrent/lstm.h"
#include "layers/registry.h"
#include "layers/regularization/dropout.h"
#include "layers/sequential.h"

namespace keel {
namespace {

using layers::Dense;
using Values = std::vector<float>;

Tensor row(const Values& values) {
  return Tensor::from(values, {1, static_cast<int64_t>(values.size())});
}

Dense ones(const std::string& name) {
  return Dense({.units = 1, .kernel_initializer = "ones", .name = name});
}

Config entry(const Config& model, const std::string& layer) {
  for (const Config& config : model["layers"].items()) {
    if (config["name"].string() == layer) return config;
  }
  throw ValueError("no layer ", layer);
}

std::string nodes(const Config& model, const std::string& layer) {
  return to_json(entry(model, layer)["inbound_nodes"]);
}

using Names = std::vector<std::string>;

// The layers whose results stand in a call's arguments.
Names names_in(const Config& config) {
  if (config.is_dict() && config.find("keras_history") != nullptr) {
    return {config["keras_history"].items()[0].string()};
  }
  Names out;
  const auto add = [&](const Config& child) {
    const Names inner = names_in(child);
    out.insert(out.end(), inner.begin(), inner.end());
  };
  if (config.is_list()) std::ranges::for_each(config.items(), add);
  if (config.is_dict()) {
    for (const auto& [_, child] : config.entries()) add(child);
  }
  return out;
}

// Reads what the model writes, which must be written the same again; weights begin as ones.
Functional copy(const Functional& model) {
  const Config config = model->get_config();
  const Functional read = FunctionalModel::from_config(parse_json(to_json(config)));
  EXPECT_EQ(read->get_config(), config);
  return read;
}

TEST(FunctionalConfigTest, CallsAreWrittenAsKeras2ListsThem) {
  const Tensor a = layers::input({.shape = {2}, .name = "a"});
  const Tensor b = layers::input({.shape = {2}, .name = "b"});
  const Dense shared = ones("shared");
  const Tensor y = layers::Add({.name = "sum"})(Tensors::list({shared(a), shared(b)})).tensor();
  const Functional model({.inputs = Tensors::list({a, b}), .outputs = y, .name = "m"});
  const Config config = model->get_config();
  EXPECT_EQ(config["name"].string(), "m");
  EXPECT_EQ(nodes(config, "a"), "[]");
  EXPECT_EQ(nodes(config, "shared"), R"([[["a", 0, 0, {}]], [["b", 0, 0, {}]]])");
  EXPECT_EQ(nodes(config, "sum"), R"([[["shared", 0, 0, {}], ["shared", 1, 0, {}]]])");
  EXPECT_EQ(to_json(config["input_layers"]), R"([["a", 0, 0], ["b", 0, 0]])");
  EXPECT_EQ(to_json(config["output_layers"]), R"([["sum", 0, 0]])");
  EXPECT_EQ(entry(config, "sum")["class_name"].string(), "Add");
  const Tensors batch = Tensors::list({row({1, 2}), row({3, 4})});
  EXPECT_EQ(copy(model)(batch).tensor().item<float>(), 10);
}

TEST(FunctionalConfigTest, DictsOfInputsAndOutputsAreMirrored) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Tensor z = layers::input({.shape = {2}, .name = "z"});
  const Functional model({.inputs = {{"left", x}, {"right", Tensors{{"z", z}}}},
                          .outputs = {{"y", ones("d")(x)}, {"z", z}}});
  const Config config = model->get_config();
  EXPECT_EQ(to_json(config["input_layers"]),
            R"({"left": ["x", 0, 0], "right": {"z": ["z", 0, 0]}})");
  EXPECT_EQ(to_json(config["output_layers"]), R"({"y": ["d", 0, 0], "z": ["z", 0, 0]})");
  const Tensors out = copy(model)({{"left", row({1, 2})}, {"right", Tensors{{"z", row({3, 4})}}}});
  EXPECT_EQ(out["y"].tensor().item<float>(), 3);
  EXPECT_EQ(out["z"].tensor().to_vector<float>(), (Values{3, 4}));
}

TEST(FunctionalConfigTest, StructuresOfInputsAreWrittenAsKeras3DoesAndReadAgain) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const RaggedTensor r = layers::ragged_input({.dtype = DType::kInt64, .name = "r"});
  const layers::Identity identity({.name = "same"});
  const Tensors y = identity(Tensors{
      {"dense", x}, {"lists", Tensors::list({Tensors(r)})}, {"pair", Tensors::tuple({x, x})}});
  const Functional model({.inputs = Tensors::list({x, r}), .outputs = y});
  const Config call = entry(model->get_config(), "same")["inbound_nodes"].items()[0];
  EXPECT_EQ(to_json(call["args"].items()[0]["dense"]),
            R"({"class_name": "__keras_tensor__", "config": {"shape": [null, 2], )"
            R"("dtype": "float32", "keras_history": ["x", 0, 0]}})");
  const Functional read = copy(model);
  const RaggedTensor rows = RaggedTensor::from_rows<int64_t>({{4, 5}});
  const Tensors out = read(Tensors::list({row({1, 2}), rows}));
  EXPECT_EQ(out["dense"].tensor().to_vector<float>(), (Values{1, 2}));
  EXPECT_EQ(out["lists"][0].leaf().ragged().values.size(), 2);
  EXPECT_EQ(call["args"].items()[0]["pair"]["class_name"].string(), "__tuple__");
}

TEST(FunctionalConfigTest, NestedModelsAreReadBack) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Functional inner({.inputs = x, .outputs = ones("d")(x), .name = "inner"});
  const Sequential stack({.layers = {ones("s")}, .name = "stack"});
  const Tensor z = layers::input({.shape = {2}, .name = "z"});
  const Tensor sum = layers::Add({.name = "sum"})(Tensors::list({inner(z), stack(z)})).tensor();
  const Functional model({.inputs = z, .outputs = Tensors::list({sum, inner(z)})});
  const Config config = model->get_config();
  EXPECT_EQ(nodes(config, "inner"), R"([[["z", 0, 0, {}]], [["z", 0, 0, {}]]])");
  EXPECT_EQ(nodes(config, "sum"), R"([[["inner", 0, 0, {}], ["stack", 0, 0, {}]]])");
  // From 1 among the outputs: the second call of the model.
  EXPECT_EQ(to_json(config["output_layers"]), R"([["sum", 0, 0], ["inner", 2, 0]])");
  const Tensors out = copy(model)(Tensors(row({1, 2})));
  EXPECT_EQ(out[0].tensor().item<float>(), 6);
  EXPECT_EQ(out[1].tensor().item<float>(), 3);
}

TEST(FunctionalConfigTest, FrozenModelsStayFrozen) {
  const Tensor x = layers::input({.shape = {2}});
  const Functional model({.inputs = x, .outputs = ones("d")(x)});
  model->set_trainable(false);
  EXPECT_TRUE(copy(model)->trainable_variables().empty());
}

TEST(FunctionalConfigTest, OpsCannotBeWritten) {
  const Tensor x = layers::input({.shape = {2}});
  const Functional op({.inputs = x, .outputs = ones("d")(x) * 2});
  try {
    op->get_config();
    FAIL() << "no error";
  } catch (const NotImplementedError& error) {
    EXPECT_NE(std::string(error.what()).find("op "), std::string::npos) << error.what();
  }
}

TEST(FunctionalConfigTest, ConstantsAreWrittenAsArraysAndReadAgain) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Tensors sum = layers::Add({.name = "sum"})(Tensors::list({x, row({1, 2})}));
  const Functional model({.inputs = x, .outputs = sum});
  EXPECT_EQ(copy(model)(Tensors(row({3, 4}))).tensor().to_vector<float>(), (Values{4, 6}));
}

TEST(FunctionalConfigTest, MasksOfTheCallersOwnAreWrittenAndReadAgain) {
  const Tensor x = layers::input({.shape = {2, 1}, .name = "x"});
  const Tensor keep = layers::input({.shape = {2}, .dtype = DType::kBool, .name = "keep"});
  const Tensor y = layers::Identity({.name = "y"})(x.with_mask(keep));
  const Functional model({.inputs = Tensors::list({x, keep}), .outputs = y});
  const Config call = entry(model->get_config(), "y")["inbound_nodes"].items()[0];
  EXPECT_EQ(names_in(call["args"]), (Names{"x"}));
  EXPECT_EQ(names_in(call["kwargs"]["mask"]), (Names{"keep"}));
  const Tensor out = copy(model)(Tensors::list({Tensor::from<float>({1, 2}, {1, 2, 1}),
                                                Tensor::from<bool>({true, false}, {1, 2})}))
                         .tensor();
  ASSERT_TRUE(out.mask());
  EXPECT_EQ(out.mask().to_vector<bool>(), (std::vector<bool>{true, false}));
}

// ---- Layers that take several arguments in Keras.

Tensor sequence(const std::string& name) { return layers::input({.shape = {3, 2}, .name = name}); }

Config call_of(const Functional& model, const std::string& layer) {
  return entry(model->get_config(), layer)["inbound_nodes"].items()[0];
}

TEST(FunctionalConfigTest, AttentionOfHeadsIsCalledWithQueryValueAndKey) {
  const Tensor q = sequence("q"), v = sequence("v"), k = sequence("k");
  const layers::MultiHeadAttention heads({.num_heads = 1, .key_dim = 2, .name = "heads"});
  const layers::GroupedQueryAttention groups(
      {.head_dim = 2, .num_query_heads = 2, .num_key_value_heads = 1, .name = "groups"});
  const Functional model(
      {.inputs = Tensors::list({q, v, k}),
       .outputs = Tensors::list({heads(Tensors::list({q, v})), groups(Tensors::list({q, v, k}))})});
  const Config two = call_of(model, "heads"), three = call_of(model, "groups");
  ASSERT_EQ(two["args"].items().size(), 2);
  EXPECT_EQ(names_in(two["args"]), (Names{"q", "v"}));
  EXPECT_EQ(to_json(two["kwargs"]), "{}");
  ASSERT_EQ(three["args"].items().size(), 3);
  EXPECT_EQ(names_in(three["args"]), (Names{"q", "v", "k"}));
  copy(model);
}

TEST(FunctionalConfigTest, WhatAttentionIsCalledWithByKeywordIsKept) {
  const Tensor q = sequence("q"), v = sequence("v");
  const Tensor seen = layers::input({.shape = {3, 3}, .dtype = DType::kBool, .name = "seen"});
  const Tensor keep = layers::input({.shape = {3}, .dtype = DType::kBool, .name = "keep"});
  const layers::MultiHeadAttention heads({.num_heads = 1, .key_dim = 2, .name = "heads"});
  const Tensors y = heads(Tensors::list({q, v.with_mask(keep)}), {.training = false,
                                                                  .attention_mask = seen,
                                                                  .return_attention_scores = true,
                                                                  .use_causal_mask = true});
  const Functional model({.inputs = Tensors::list({q, v, seen, keep}), .outputs = y});
  const Config call = call_of(model, "heads");
  EXPECT_EQ(names_in(call["args"]), (Names{"q", "v"}));
  EXPECT_EQ(names_in(call["kwargs"]["attention_mask"]), (Names{"seen"}));
  EXPECT_EQ(names_in(call["kwargs"]["value_mask"]), (Names{"keep"}));
  EXPECT_TRUE(call["kwargs"]["return_attention_scores"].boolean());
  EXPECT_TRUE(call["kwargs"]["use_causal_mask"].boolean());
  EXPECT_FALSE(call["kwargs"]["training"].boolean());
  copy(model);
}

TEST(FunctionalConfigTest, AttentionOfOneHeadIsCalledWithAList) {
  const Tensor q = sequence("q"), v = sequence("v");
  const Tensor keep = layers::input({.shape = {3}, .dtype = DType::kBool, .name = "keep"});
  const layers::Attention plain({.name = "plain"}), masked({.name = "masked"});
  const layers::AdditiveAttention causal({.name = "causal"});
  const Functional model(
      {.inputs = Tensors::list({q, v, keep}),
       .outputs = Tensors::list({plain(Tensors::list({q, v})),
                                 masked(Tensors::tuple({q, v.with_mask(keep)})),
                                 causal(Tensors::list({q, v}), {.use_causal_mask = true})})});
  const Config config = model->get_config();
  EXPECT_EQ(nodes(config, "plain"), R"([[["q", 0, 0, {}], ["v", 0, 0, {}]]])");
  EXPECT_EQ(nodes(config, "causal"), R"([[["q", 0, 0, {"use_causal_mask": true}], )"
                                     R"(["v", 0, 0, {"use_causal_mask": true}]]])");
  const Config call = call_of(model, "masked");
  ASSERT_EQ(call["args"].items().size(), 1);
  EXPECT_TRUE(call["args"].items()[0].is_list());
  EXPECT_TRUE(call["kwargs"]["mask"].items()[0].is_null());
  EXPECT_EQ(names_in(call["kwargs"]["mask"]), (Names{"keep"}));
  copy(model);
}

TEST(FunctionalConfigTest, StatesOfRecurrentLayersAreAKeyword) {
  const Tensor x = sequence("x");
  const Tensor h = layers::input({.shape = {4}, .name = "h"});
  const Tensor c = layers::input({.shape = {4}, .name = "c"});
  const layers::LSTM lstm({.units = 4, .name = "lstm"});
  const layers::GRU gru({.units = 4, .name = "gru"});
  const layers::GRUCell cell({.units = 2, .name = "cell"});
  const Tensor step = layers::input({.shape = {2}, .name = "step"});
  const Functional model(
      {.inputs = Tensors::list({x, h, c, step}),
       .outputs = Tensors::list({lstm(x, {.initial_state = {h, c}}), gru(x, {.initial_state = {h}}),
                                 cell(Tensors::list({step, step}))})});
  const Config two = call_of(model, "lstm"), one = call_of(model, "gru");
  EXPECT_EQ(names_in(two["args"]), (Names{"x"}));
  EXPECT_EQ(names_in(two["kwargs"]["initial_state"]), (Names{"h", "c"}));
  EXPECT_TRUE(one["kwargs"]["initial_state"].is_list());
  const Config of_cell = call_of(model, "cell");
  ASSERT_EQ(of_cell["args"].items().size(), 2);
  EXPECT_TRUE(of_cell["args"].items()[1].is_list());
  copy(model);
}

TEST(FunctionalConfigTest, FurtherArgumentsOfOtherLayersAreWrittenAsKerasTakesThem) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Tensor y = layers::input({.shape = {2}, .name = "y"});
  const layers::FeatureCross cross({.name = "cross"});
  const layers::CategoryEncoding counts({.num_tokens = 9, .output_mode = "count", .name = "n"});
  const Functional model(
      {.inputs = Tensors::list({x, y}),
       .outputs = Tensors::list({cross(Tensors::list({x, y})), counts(x, {.count_weights = y})})});
  EXPECT_EQ(call_of(model, "cross")["args"].items().size(), 2);
  EXPECT_EQ(names_in(call_of(model, "n")["args"]), (Names{"x"}));
  EXPECT_EQ(names_in(call_of(model, "n")["kwargs"]["count_weights"]), (Names{"y"}));
  const Tensors batch = Tensors::list({row({1, 3}), row({2, 4})});
  EXPECT_EQ(copy(model)(batch)[1].tensor().to_vector<float>(), (Values{0, 2, 0, 4, 0, 0, 0, 0, 0}));
}

TEST(FunctionalConfigTest, TrainingIsWrittenForLayersThatKnowIt) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const layers::Dropout dropout({.rate = 0.5, .name = "drop"});
  const Functional model(
      {.inputs = x, .outputs = dropout(ones("d")(x, {.training = true}), {.training = true})});
  const Config config = model->get_config();
  EXPECT_EQ(nodes(config, "d"), R"([[["x", 0, 0, {}]]])");
  EXPECT_EQ(nodes(config, "drop"), R"([[["d", 0, 0, {"training": true}]]])");
}

TEST(FunctionalConfigTest, ArgumentsByKeywordComeBehindOthersInTheOrderOfLayers) {
  const Tensor q = sequence("q"), v = sequence("v");
  const Tensor seen = layers::input({.shape = {3, 3}, .dtype = DType::kBool, .name = "seen"});
  const layers::MultiHeadAttention heads({.num_heads = 1, .key_dim = 2, .name = "heads"});
  const Functional model({.inputs = Tensors::list({seen, v, q}),
                          .outputs = heads(Tensors::list({q, v}), {.attention_mask = seen})});
  Names names;
  for (const auto& layer : model->layers()) names.push_back(layer->name());
  EXPECT_EQ(names, (Names{"q", "v", "seen", "heads"}));
}

// ---- Graphs as Keras writes them. Layers stand in any order.

std::string layer(const std::string& name, const std::string& class_name, const std::string& config,
                  const std::string& inbound) {
  return R"({"name": ")" + name + R"(", "class_name": ")" + class_name + R"(", "config": {)" +
         config + R"(}, "inbound_nodes": )" + inbound + "}";
}

std::string input(const std::string& name) {
  return layer(name, "InputLayer", R"("batch_shape": [null, 2], "dtype": "float32")", "[]");
}

std::string keras3(const std::string& name, int call = 0) {
  return R"({"class_name": "__keras_tensor__", "config": {"shape": [null, 1], "dtype": "float32",
             "keras_history": [")" +
         name + R"(", )" + std::to_string(call) + ", 0]}}";
}

const char* const kUnits = R"("units": 1, "kernel_initializer": "ones")";

Functional read(const std::vector<std::string>& layers, const std::string& inputs,
                const std::string& outputs) {
  std::string text;
  for (const std::string& one : layers) text += (text.empty() ? "" : ", ") + one;
  return FunctionalModel::from_config(parse_json(R"({"name": "m", "trainable": true, "layers": [)" +
                                                 text + R"(], "input_layers": )" + inputs +
                                                 R"(, "output_layers": )" + outputs + "}"));
}

TEST(FunctionalConfigTest, NodesOfKeras3AreRead) {
  const std::string both =
      "[{\"args\": [[" + keras3("d") + ", " + keras3("d", 1) + "]], \"kwargs\": {\"mask\": null}}]";
  const std::string calls = "[{\"args\": [" + keras3("a") + "], \"kwargs\": {}}, {\"args\": [" +
                            keras3("b") + "], \"kwargs\": {}}]";
  const Functional model = read({layer("cat", "Concatenate", R"("axis": -1)", both),
                                 layer("d", "Dense", kUnits, calls), input("b"), input("a")},
                                R"([["a", 0, 0], ["b", 0, 0]])", R"(["cat", 0, 0])");
  const Tensors batch = Tensors::list({row({1, 2}), row({3, 4})});
  EXPECT_EQ(model(batch).tensor().to_vector<float>(), (Values{3, 7}));
}

TEST(FunctionalConfigTest, OperatorsWithTensorArgumentsAreMergingLayers) {
  const std::string args =
      "[{\"args\": [" + keras3("a") + ", " + keras3("a") + "], \"kwargs\": {}}]";
  const Functional model =
      read({input("a"), layer("mul", "Multiply", "", args)}, R"(["a", 0, 0])", R"(["mul", 0, 0])");
  EXPECT_EQ(model(row({2, 3})).to_vector<float>(), (Values{4, 9}));
}

TEST(FunctionalConfigTest, MasksAreDroppedWithTheOperationsThatMakeThem) {
  const std::string not_equal = "[{\"args\": [" + keras3("a") + ", 0], \"kwargs\": {}}]";
  const std::string masked =
      "[{\"args\": [" + keras3("a") + "], \"kwargs\": {\"mask\": " + keras3("ne") + "}}]";
  const Functional model = read(
      {input("a"), layer("ne", "NotEqual", "", not_equal), layer("d", "Dense", kUnits, masked)},
      R"(["a", 0, 0])", R"(["d", 0, 0])");
  EXPECT_EQ(model(row({2, 3})).item<float>(), 5);
}

std::string steps(const std::string& name) {
  return layer(name, "InputLayer", R"("batch_shape": [null, 2, 2], "dtype": "float32")", "[]");
}

std::string mask_input(const std::string& name, const std::string& shape) {
  return layer(name, "InputLayer", R"("dtype": "bool", "batch_shape": )" + shape, "[]");
}

// Twice the mean of the sums 3 and 7 of the values that a step sees, for each of two steps.
Values attended(const std::string& inbound, const std::string& class_name = "MultiHeadAttention",
                const std::string& config = R"("num_heads": 1, "key_dim": 2, "use_bias": false,
                                               "kernel_initializer": "ones")") {
  const Functional model =
      read({steps("q"), steps("v"), mask_input("seen", "[null, 2, 2]"),
            mask_input("keep", "[null, 2]"), layer("att", class_name, config, inbound),
            layer("ne", "NotEqual", "", "[{\"args\": [" + keras3("q") + ", 0], \"kwargs\": {}}]")},
           R"([["q", 0, 0], ["v", 0, 0], ["seen", 0, 0], ["keep", 0, 0]])", R"(["att", 0, 0])");
  const Tensor v = Tensor::from<float>({1, 2, 3, 4}, {1, 2, 2});
  const Tensor seen = Tensor::from<bool>({false, true, true, false}, {1, 2, 2});
  const Tensor keep = Tensor::from<bool>({true, false}, {1, 2});
  const Tensors batch = Tensors::list({Tensor::zeros({1, 2, 2}), v, seen, keep});
  const Values out = flatten(model(batch))[0].tensor().to_vector<float>();
  EXPECT_EQ(flatten(copy(model)(batch))[0].tensor().to_vector<float>(), out);
  return {out[0], out[2]};
}

std::string attention_call(const std::string& arguments, const std::string& keywords) {
  return "[{\"args\": [" + arguments + "], \"kwargs\": {" + keywords + "}}]";
}

TEST(FunctionalConfigTest, KeywordsOfAttentionAreRead) {
  const std::string both = keras3("q") + ", " + keras3("v");
  EXPECT_EQ(attended(attention_call(both, "")), (Values{10, 10}));
  EXPECT_EQ(attended(attention_call(both, R"("attention_mask": )" + keras3("seen"))),
            (Values{14, 6}));
  EXPECT_EQ(attended(attention_call(both, R"("attention_mask": [[[true, false], [true, true]]])")),
            (Values{6, 10}));
  EXPECT_EQ(attended(attention_call(both, R"("use_causal_mask": true, "training": false)")),
            (Values{6, 10}));
  EXPECT_EQ(attended(attention_call(both, R"("value_mask": )" + keras3("keep"))), (Values{6, 6}));
  EXPECT_EQ(attended(attention_call(both + ", " + keras3("v") + ", null, null",
                                    R"("key_mask": )" + keras3("keep"))),
            (Values{6, 6}));
  EXPECT_EQ(attended(attention_call(both, R"("return_attention_scores": true, "key": null)")),
            (Values{10, 10}));
  EXPECT_EQ(attended(attention_call(keras3("q"), R"("value": )" + keras3("v"))), (Values{10, 10}));
  // What an operator computes is found out here.
  EXPECT_EQ(attended(attention_call(both, R"("query_mask": )" + keras3("ne"))), (Values{10, 10}));
}

TEST(FunctionalConfigTest, KeywordsOfAttentionInKeras2AreRead) {
  EXPECT_EQ(attended(R"([[["q", 0, 0, {"value": ["v", 0, 0]}]]])"), (Values{10, 10}));
  EXPECT_EQ(attended(R"([[["q", 0, 0, {"value": ["v", 0, 0], "attention_mask": ["seen", 0, 0],
                                       "use_causal_mask": false}]]])"),
            (Values{14, 6}));
}

TEST(FunctionalConfigTest, MasksInAListAreThoseOfTheInputsInOrder) {
  const auto means = [](const std::string& keywords) {
    const std::string both = "[" + keras3("q") + ", " + keras3("v") + "]";
    return attended(attention_call(both, keywords), "Attention", "");
  };
  EXPECT_EQ(means(""), (Values{2, 2}));
  EXPECT_EQ(means(R"("mask": [null, null])"), (Values{2, 2}));
  EXPECT_EQ(means(R"("mask": [null, )" + keras3("keep") + "]"), (Values{1, 1}));
  EXPECT_EQ(means(R"("mask": [)" + keras3("keep") + ", null]"), (Values{2, 0}));
  EXPECT_EQ(means(R"("use_causal_mask": true, "return_attention_scores": true)"), (Values{1, 2}));
}

TEST(FunctionalConfigTest, StatesOfRecurrentLayersAreReadInEveryForm) {
  const std::string config = R"("units": 1, "kernel_initializer": "zeros", "activation": "linear",
                                "recurrent_initializer": "ones")";
  const auto last = [&](const std::string& inbound) {
    const Functional model =
        read({steps("x"), layer("h", "InputLayer", R"("batch_shape": [null, 1])", "[]"),
              mask_input("keep", "[null, 2]"), layer("rnn", "SimpleRNN", config, inbound)},
             R"([["x", 0, 0], ["h", 0, 0], ["keep", 0, 0]])", R"(["rnn", 0, 0])");
    const Tensors batch = Tensors::list(
        {Tensor::zeros({1, 2, 2}), row({5}), Tensor::from<bool>({true, false}, {1, 2})});
    const float out = model(batch).tensor().item<float>();
    EXPECT_EQ(copy(model)(batch).tensor().item<float>(), out);
    return out;
  };
  const std::string x = keras3("x"), h = keras3("h");
  EXPECT_EQ(last(attention_call(x, "")), 0);
  EXPECT_EQ(last(attention_call(x, R"("initial_state": [)" + h + R"(], "mask": null)")), 5);
  EXPECT_EQ(last(attention_call(x, R"("initial_state": )" + h)), 5);
  EXPECT_EQ(last(attention_call(x + ", [" + h + "], " + keras3("keep") + ", false", "")), 5);
  EXPECT_EQ(last(R"([[["x", 0, 0, {}], ["h", 0, 0, {}]]])"), 5);
  EXPECT_EQ(last(R"([[["x", 0, 0, {"initial_state": [["h", 0, 0]], "mask": ["keep", 0, 0]}]]])"),
            5);
}

std::string nested() {
  return R"("name": "inner", "layers": [)" + input("x") + ", " +
         layer("d", "Dense", kUnits, R"([[["x", 0, 0, {}]]])") +
         R"(], "input_layers": [["x", 0, 0]], "output_layers": [["d", 0, 0]])";
}

TEST(FunctionalConfigTest, CallsOfNestedModelsMayBeCountedFromOne) {
  const std::string calls = R"([[["a", 0, 0, {}]], [["b", 0, 0, {}]]])";
  const auto model_of = [&](const std::string& sum) {
    return read({input("a"), input("b"), layer("inner", "Functional", nested(), calls),
                 layer("diff", "Subtract", "", sum)},
                R"([["a", 0, 0], ["b", 0, 0]])", R"([["diff", 0, 0]])");
  };
  const Tensors batch = Tensors::list({row({1, 2}), row({3, 4})});
  const Functional from_zero = model_of(R"([[["inner", 0, 0, {}], ["inner", 1, 0, {}]]])");
  EXPECT_EQ(from_zero(batch).tensor().item<float>(), -4);
  const Functional from_one = model_of(R"([[["inner", 1, 0, {}], ["inner", 2, 0, {}]]])");
  EXPECT_EQ(from_one(batch).tensor().item<float>(), -4);
}

TEST(FunctionalConfigTest, TheOneReadingThatUsesEveryCallIsTaken) {
  // By Keras 2: the first call feeds the sum, the second is an output.
  const std::string calls = R"([[["a", 0, 0, {}]], [["b", 0, 0, {}]]])";
  const Functional model =
      read({input("a"), input("b"), layer("inner", "Functional", nested(), calls),
            layer("sum", "Add", "", R"([[["inner", 1, 0, {}], ["inner", 1, 0, {}]]])")},
           R"([["a", 0, 0], ["b", 0, 0]])", R"([["sum", 0, 0], ["inner", 2, 0]])");
  const Tensors out = model(Tensors::list({row({1, 2}), row({3, 4})}));
  EXPECT_EQ(out[0].tensor().item<float>(), 6);
  EXPECT_EQ(out[1].tensor().item<float>(), 7);
}

TEST(FunctionalConfigTest, TheOldClassNameModelIsRead) {
  const auto model =
      layers::deserialize(parse_json(R"({"class_name": "Model", "config": {)" + nested() + "}}"));
  EXPECT_EQ(model->class_name(), "Functional");
}

TEST(FunctionalConfigTest, DeepGraphsAreRead) {
  std::vector<std::string> all = {input("l0")};
  constexpr int kDepth = 1000;
  for (int i = 1; i <= kDepth; ++i) {
    const std::string before = R"([[["l)" + std::to_string(i - 1) + R"(", 0, 0, {}]]])";
    all.insert(all.begin(), layer("l" + std::to_string(i), "Identity", "", before));
  }
  const Functional model =
      read(all, R"(["l0", 0, 0])", R"(["l)" + std::to_string(kDepth) + R"(", 0, 0])");
  EXPECT_EQ(model(row({2, 3})).to_vector<float>(), (Values{2, 3}));
}

// ---- Mistakes.

void expect_value_error(const std::string& inbound, const std::string& inputs = R"(["a", 0, 0])",
                        const std::string& outputs = R"(["d", 0, 0])") {
  EXPECT_THROW(read({input("a"), layer("d", "Dense", kUnits, inbound)}, inputs, outputs),
               ValueError)
      << inbound << inputs << outputs;
}

TEST(FunctionalConfigTest, MalformedReferencesAreValueErrors) {
  expect_value_error(R"([[["nobody", 0, 0, {}]]])");
  expect_value_error(R"([[["a", 1, 0, {}]]])");
  expect_value_error(R"([[["a", -1, 0, {}]]])");
  expect_value_error(R"([[["a", 0, 1, {}]]])");
  expect_value_error(R"([[["a", 0, -1, {}]]])");
  expect_value_error(R"([[["a", "0", 0, {}]]])");
  expect_value_error(R"([[["a", 0]]])");
  expect_value_error(R"([[["a", 0, 0, []]]])");
  expect_value_error(R"([{"args": [{"class_name": "__keras_tensor__"}], "kwargs": {}}])");
  expect_value_error(R"([{"args": "a", "kwargs": {}}])");
  expect_value_error(R"([{"args": []}])");
  expect_value_error(R"("a")");
}

TEST(FunctionalConfigTest, MalformedEndsAreValueErrors) {
  const std::string good = R"([[["a", 0, 0, {}]]])";
  expect_value_error(good, R"(["nobody", 0, 0])");
  expect_value_error(good, R"(["a", 1, 0])");
  expect_value_error(good, R"(["d", 0, 0])");
  expect_value_error(good, R"(["a", 0, 0])", R"(["d", 1, 0])");
  expect_value_error(good, R"(["a", 0, 0])", R"([])");
}

TEST(FunctionalConfigTest, CyclesAreValueErrors) {
  expect_value_error(R"([[["d", 0, 0, {}]]])");
  EXPECT_THROW(read({input("a"), layer("d", "Dense", kUnits, R"([[["e", 0, 0, {}]]])"),
                     layer("e", "Dense", kUnits, R"([[["d", 0, 0, {}]]])")},
                    R"(["a", 0, 0])", R"(["d", 0, 0])"),
               ValueError);
}

TEST(FunctionalConfigTest, MalformedLayersAreValueErrors) {
  const std::string good = layer("d", "Dense", kUnits, R"([[["a", 0, 0, {}]]])");
  const auto fails = [&](const std::vector<std::string>& layers) {
    EXPECT_THROW(read(layers, R"(["a", 0, 0])", R"(["d", 0, 0])"), ValueError) << layers[0];
  };
  fails({input("a"), good, good});
  fails({"1", input("a"), good});
  fails({"{}", input("a"), good});
  fails({R"({"name": "d", "class_name": "Dense", "inbound_nodes": [[["a", 0, 0, {}]]]})",
         input("a")});
  fails(
      {R"({"name": "d", "class_name": "Dense", "config": 1, "inbound_nodes": [[["a", 0, 0, {}]]]})",
       input("a")});
  fails({R"({"name": "d", "class_name": "Dense", "config": {}})", input("a")});
  fails({layer("d", "Nobody", "", R"([[["a", 0, 0, {}]]])"), input("a")});
  fails({layer("a", "InputLayer", R"("batch_shape": [null, 2])", R"([[["a", 0, 0, {}]]])"), good});
}

TEST(FunctionalConfigTest, MalformedModelsAreValueErrors) {
  for (const char* text : {"1", "[]", "{}", R"({"name": 1})", R"({"layers": {}})",
                           R"({"layers": [], "input_layers": []})",
                           R"({"layers": [], "input_layers": [], "output_layers": []})"}) {
    EXPECT_THROW(FunctionalModel::from_config(parse_json(text)), ValueError) << text;
  }
}

TEST(FunctionalConfigTest, WhatIsNotOfferedIsSaid) {
  const auto fails = [](const std::string& inbound) {
    EXPECT_THROW(read({input("a"), layer("d", "Dense", kUnits, inbound)}, R"(["a", 0, 0])",
                      R"(["d", 0, 0])"),
                 NotImplementedError)
        << inbound;
  };
  fails(R"([[["a", 0, 0, {"other": 1}]]])");
  fails(R"([[["a", 0, 0, {"initial_state": "text"}]]])");
  fails(R"([[["_CONSTANT_VALUE", -1, "text", {}]]])");
  fails("[{\"args\": [" + keras3("a") + ", \"text\"], \"kwargs\": {}}]");
}

TEST(FunctionalConfigTest, AnArgumentThatIsNotOfferedIsNamedWithItsLayer) {
  const auto message = [](const std::string& class_name, const std::string& keywords) {
    try {
      const std::string both = keras3("a") + ", " + keras3("a");
      read({input("a"), layer("here", class_name, R"("num_heads": 1, "key_dim": 1)",
                              attention_call(both, keywords))},
           R"(["a", 0, 0])", R"(["here", 0, 0])");
    } catch (const NotImplementedError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  for (const std::string& found : {message("MultiHeadAttention", R"("strange": 1)"),
                                   message("MultiHeadAttention", R"("use_causal_mask": "strange")"),
                                   message("Identity", R"("strange": [1, 2])")}) {
    EXPECT_NE(found.find("'here'"), std::string::npos) << found;
    EXPECT_NE(found.find("strange"), std::string::npos) << found;
  }
}

// ---- Operators of Keras 3, which are no layers there.

// A model of the inputs "a" and "b" with one operator "op" of this class.
Functional with_operator(const std::string& class_name, const std::string& arguments,
                         const std::string& config = "") {
  const std::string op =
      layer("op", class_name, config, "[{\"args\": [" + arguments + "], \"kwargs\": {}}]");
  return read({input("a"), input("b"), R"({"module": "keras.src.ops.numpy", )" + op.substr(1)},
              R"([["a", 0, 0], ["b", 0, 0]])", R"(["op", 0, 0])");
}

Values of_operator(const Functional& model) {
  const Tensors batch = Tensors::list({row({6, -2}), row({3, 4})});
  const Values out = model(batch).tensor().to_vector<float>();
  EXPECT_EQ(copy(model)(batch).tensor().to_vector<float>(), out);
  return out;
}

TEST(FunctionalConfigTest, OperatorsOfTwoTensorsAreRead) {
  const std::string both = keras3("a") + ", " + keras3("b");
  EXPECT_EQ(of_operator(with_operator("Add", both)), (Values{9, 2}));
  EXPECT_EQ(of_operator(with_operator("Subtract", both)), (Values{3, -6}));
  EXPECT_EQ(of_operator(with_operator("Multiply", both)), (Values{18, -8}));
  EXPECT_EQ(of_operator(with_operator("Maximum", both)), (Values{6, 4}));
  EXPECT_EQ(of_operator(with_operator("Minimum", both)), (Values{3, -2}));
  EXPECT_EQ(of_operator(with_operator("Concatenate", "[" + both + "]", R"("axis": 1)")),
            (Values{6, -2, 3, 4}));
}

TEST(FunctionalConfigTest, OperatorsOfATensorAndAConstantAreRead) {
  const std::string a = keras3("a");
  EXPECT_EQ(of_operator(with_operator("Multiply", a + ", 2.0")), (Values{12, -4}));
  EXPECT_EQ(of_operator(with_operator("Multiply", "[1, 3], " + a)), (Values{6, -6}));
  EXPECT_EQ(of_operator(with_operator("Add", "1, " + a)), (Values{7, -1}));
  EXPECT_EQ(of_operator(with_operator("Subtract", a + ", 1")), (Values{5, -3}));
  EXPECT_EQ(of_operator(with_operator("Subtract", "1, " + a)), (Values{-5, 3}));
  EXPECT_EQ(of_operator(with_operator("TrueDivide", a + ", 2")), (Values{3, -1}));
  const std::string array =
      R"({"class_name": "__numpy__", "config": {"value": [1, 2], "dtype": "float32"}})";
  EXPECT_EQ(of_operator(with_operator("Add", a + ", " + array)), (Values{7, 0}));
}

TEST(FunctionalConfigTest, OperatorsOfOneTensorAreRead) {
  EXPECT_EQ(of_operator(with_operator("Relu", keras3("a"))), (Values{6, 0}));
  EXPECT_EQ(of_operator(with_operator("Negative", keras3("a"))), (Values{-6, 2}));
  EXPECT_EQ(of_operator(with_operator("Reshape", keras3("a"), R"("newshape": [-1, 2])")),
            (Values{6, -2}));
}

TEST(FunctionalConfigTest, LegacyFilesTellOperatorsByTheirSeparateArguments) {
  const std::string both =
      "[{\"args\": [" + keras3("a") + ", " + keras3("b") + "], \"kwargs\": {}}]";
  const Functional model = read({input("a"), input("b"), layer("op", "Multiply", "", both)},
                                R"([["a", 0, 0], ["b", 0, 0]])", R"(["op", 0, 0])");
  EXPECT_EQ(of_operator(model), (Values{18, -8}));
}

TEST(FunctionalConfigTest, OperatorsWithoutALayerAreRefusedByName) {
  for (const char* name : {"Sum", "Divide", "Einsum"}) {
    try {
      with_operator(name, keras3("a") + ", " + keras3("b"));
      FAIL() << name;
    } catch (const NotImplementedError& error) {
      EXPECT_NE(std::string(error.what()).find(name), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace keel
