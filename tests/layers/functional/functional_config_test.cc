// Tests layers/functional/internal/functional_nodes.cc and functional_operators.cc.
#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/attention/attention.h>
#include <keel/layers/attention/grouped_query_attention.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/recurrent/gru.h>
#include <keel/layers/recurrent/lstm.h>
#include <keel/layers/registry.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/layers/small_graphs.h"
#include "tests/support/errors.h"

namespace keel::functional_config_test {

using layers::Dense;
using testing::HasSubstr;
using testing_support::message_of;

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

// Returns the names of the layers whose results are arguments of a call.
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

TEST(FunctionalConfigTest, DictsOfInputsAndOutputsRoundTrip) {
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

TEST(FunctionalConfigTest, InputStructuresRoundTripInTheFormOfKeras3) {
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
  // Keras counts calls from 1 among the outputs, so this is the second call of the model.
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
  EXPECT_THAT(message_of<NotImplementedError>([&] { op->get_config(); }), HasSubstr("op "));
}

TEST(FunctionalConfigTest, ConstantsRoundTripAsArrays) {
  const Tensor x = layers::input({.shape = {2}, .name = "x"});
  const Tensors sum = layers::Add({.name = "sum"})(Tensors::list({x, row({1, 2})}));
  const Functional model({.inputs = x, .outputs = sum});
  EXPECT_EQ(copy(model)(Tensors(row({3, 4}))).tensor().to_vector<float>(), (Values{4, 6}));
}

TEST(FunctionalConfigTest, ExplicitMasksRoundTrip) {
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

// ---- Layers with several arguments in Keras.

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

TEST(FunctionalConfigTest, KeywordArgumentsOfAttentionAreKept) {
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

TEST(FunctionalConfigTest, AdditionalArgumentsHaveTheFormOfKeras) {
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

TEST(FunctionalConfigTest, KeywordArgumentsFollowPositionalOnes) {
  const Tensor q = sequence("q"), v = sequence("v");
  const Tensor seen = layers::input({.shape = {3, 3}, .dtype = DType::kBool, .name = "seen"});
  const layers::MultiHeadAttention heads({.num_heads = 1, .key_dim = 2, .name = "heads"});
  const Functional model({.inputs = Tensors::list({seen, v, q}),
                          .outputs = heads(Tensors::list({q, v}), {.attention_mask = seen})});
  Names names;
  for (const auto& layer : model->layers()) names.push_back(layer->name());
  EXPECT_EQ(names, (Names{"q", "v", "seen", "heads"}));
}

}  // namespace keel::functional_config_test
