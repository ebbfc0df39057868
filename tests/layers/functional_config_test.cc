#include "gtest/gtest.h"

#include "autodiff/ops.h"
#include "layers/core/dense.h"
#include "layers/core/identity.h"
#include "layers/functional.h"
#include "layers/merging/concatenate.h"
#include "layers/merging/merge.h"
#include "layers/registry.h"
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
  EXPECT_EQ(nodes(model->get_config(), "y"), R"([[["x", 0, 0, {"mask": ["keep", 0, 0]}]]])");
  const Tensor out = copy(model)(Tensors::list({Tensor::from<float>({1, 2}, {1, 2, 1}),
                                                Tensor::from<bool>({true, false}, {1, 2})}))
                         .tensor();
  ASSERT_TRUE(out.mask());
  EXPECT_EQ(out.mask().to_vector<bool>(), (std::vector<bool>{true, false}));
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
