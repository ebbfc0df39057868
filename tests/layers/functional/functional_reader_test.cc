// Tests layers/functional/internal/keras_calls.cc.
#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/layers/core/dense.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/layers/small_graphs.h"
#include "tests/support/errors.h"

namespace keel::functional_reader_test {

using testing::HasSubstr;
using testing_support::message_of;

// ---- Graphs as Keras writes them. Layers may be in any order.

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

TEST(FunctionalReaderTest, NodesOfKeras3AreRead) {
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

TEST(FunctionalReaderTest, OperatorsWithTensorArgumentsAreMergingLayers) {
  const std::string args =
      "[{\"args\": [" + keras3("a") + ", " + keras3("a") + "], \"kwargs\": {}}]";
  const Functional model =
      read({input("a"), layer("mul", "Multiply", "", args)}, R"(["a", 0, 0])", R"(["mul", 0, 0])");
  EXPECT_EQ(model(row({2, 3})).to_vector<float>(), (Values{4, 9}));
}

TEST(FunctionalReaderTest, MasksAreDroppedWithTheOperationsThatMakeThem) {
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

// Returns, for each of two steps, twice the mean of the sums 3 and 7 of the values that the step
// attends to.
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

TEST(FunctionalReaderTest, KeywordsOfAttentionAreRead) {
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
  // The layers compute the masks that operators compute in Keras.
  EXPECT_EQ(attended(attention_call(both, R"("query_mask": )" + keras3("ne"))), (Values{10, 10}));
}

TEST(FunctionalReaderTest, KeywordsOfAttentionInKeras2AreRead) {
  EXPECT_EQ(attended(R"([[["q", 0, 0, {"value": ["v", 0, 0]}]]])"), (Values{10, 10}));
  EXPECT_EQ(attended(R"([[["q", 0, 0, {"value": ["v", 0, 0], "attention_mask": ["seen", 0, 0],
                                       "use_causal_mask": false}]]])"),
            (Values{14, 6}));
}

TEST(FunctionalReaderTest, ConstantMasksAreRead) {
  const auto softmax = [](const std::string& mask) {
    return layer("s", "Softmax", "",
                 "[{\"args\": [" + keras3("a") + "], \"kwargs\": {\"mask\": " + mask + "}}]");
  };
  const std::string next = layer("r", "ReLU", R"("max_value": 0.75)",
                                 "[{\"args\": [" + keras3("s") + "], \"kwargs\": {}}]");
  const auto result = [&](const std::string& mask) {
    const Functional model =
        read({input("a"), softmax(mask), next}, R"(["a", 0, 0])", R"(["r", 0, 0])");
    return model(row({5, 5})).to_vector<float>();
  };
  EXPECT_EQ(result("[[true, false]]"), (Values{0.75, 0}));
  EXPECT_EQ(result("true"), (Values{0.5, 0.5}));
  EXPECT_EQ(result("null"), (Values{0.5, 0.5}));
}

TEST(FunctionalReaderTest, MasksInAListBelongToTheInputsInOrder) {
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

TEST(FunctionalReaderTest, StatesOfRecurrentLayersAreReadInEveryForm) {
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

TEST(FunctionalReaderTest, CallsOfNestedModelsMayBeCountedFromOne) {
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

TEST(FunctionalReaderTest, AmbiguousCallsUseTheReadingWithEveryCall) {
  // In the form of Keras 2: the first call is an input of the sum, the second one is an output.
  const std::string calls = R"([[["a", 0, 0, {}]], [["b", 0, 0, {}]]])";
  const Functional model =
      read({input("a"), input("b"), layer("inner", "Functional", nested(), calls),
            layer("sum", "Add", "", R"([[["inner", 1, 0, {}], ["inner", 1, 0, {}]]])")},
           R"([["a", 0, 0], ["b", 0, 0]])", R"([["sum", 0, 0], ["inner", 2, 0]])");
  const Tensors out = model(Tensors::list({row({1, 2}), row({3, 4})}));
  EXPECT_EQ(out[0].tensor().item<float>(), 6);
  EXPECT_EQ(out[1].tensor().item<float>(), 7);
}

TEST(FunctionalReaderTest, TheOldClassNameModelIsRead) {
  const auto model =
      layers::deserialize(parse_json(R"({"class_name": "Model", "config": {)" + nested() + "}}"));
  EXPECT_EQ(model->class_name(), "Functional");
}

TEST(FunctionalReaderTest, DeepGraphsAreRead) {
  std::vector<std::string> all = {input("l0")};
  constexpr int kDepth = 8000;
  for (int i = 1; i <= kDepth; ++i) {
    const std::string before = R"([[["l)" + std::to_string(i - 1) + R"(", 0, 0, {}]]])";
    all.insert(all.begin(), layer("l" + std::to_string(i), "Identity", "", before));
  }
  const Functional model =
      read(all, R"(["l0", 0, 0])", R"(["l)" + std::to_string(kDepth) + R"(", 0, 0])");
  EXPECT_EQ(model(row({2, 3})).to_vector<float>(), (Values{2, 3}));
}

// ---- Malformed configs.

void expect_value_error(const std::string& inbound, const std::string& inputs = R"(["a", 0, 0])",
                        const std::string& outputs = R"(["d", 0, 0])") {
  EXPECT_THROW(read({input("a"), layer("d", "Dense", kUnits, inbound)}, inputs, outputs),
               ValueError)
      << inbound << inputs << outputs;
}

TEST(FunctionalReaderTest, MalformedReferencesAreValueErrors) {
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

TEST(FunctionalReaderTest, MalformedEndsAreValueErrors) {
  const std::string good = R"([[["a", 0, 0, {}]]])";
  expect_value_error(good, R"(["nobody", 0, 0])");
  expect_value_error(good, R"(["a", 1, 0])");
  expect_value_error(good, R"(["d", 0, 0])");
  expect_value_error(good, R"(["a", 0, 0])", R"(["d", 1, 0])");
  expect_value_error(good, R"(["a", 0, 0])", R"([])");
}

TEST(FunctionalReaderTest, CallsWithoutInputsAreValueErrors) {
  const std::string none = R"([{"args": [[]], "kwargs": {}}])";
  EXPECT_THROW(read({input("a"), layer("l", "LSTM", R"("units": 1)", none)}, R"(["a", 0, 0])",
                    R"(["l", 0, 0])"),
               ValueError);
}

TEST(FunctionalReaderTest, CyclesAreValueErrors) {
  expect_value_error(R"([[["d", 0, 0, {}]]])");
  EXPECT_THROW(read({input("a"), layer("d", "Dense", kUnits, R"([[["e", 0, 0, {}]]])"),
                     layer("e", "Dense", kUnits, R"([[["d", 0, 0, {}]]])")},
                    R"(["a", 0, 0])", R"(["d", 0, 0])"),
               ValueError);
}

TEST(FunctionalReaderTest, MalformedLayersAreValueErrors) {
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

TEST(FunctionalReaderTest, MalformedModelsAreValueErrors) {
  for (const char* text : {"1", "[]", "{}", R"({"name": 1})", R"({"layers": {}})",
                           R"({"layers": [], "input_layers": []})",
                           R"({"layers": [], "input_layers": [], "output_layers": []})"}) {
    EXPECT_THROW(FunctionalModel::from_config(parse_json(text)), ValueError) << text;
  }
}

TEST(FunctionalReaderTest, UnsupportedFeaturesAreErrors) {
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

TEST(FunctionalReaderTest, UnsupportedArgumentsAreNamedWithTheirLayer) {
  const auto message = [](const std::string& class_name, const std::string& keywords) {
    return message_of<NotImplementedError>([&] {
      const std::string both = keras3("a") + ", " + keras3("a");
      read({input("a"), layer("here", class_name, R"("num_heads": 1, "key_dim": 1)",
                              attention_call(both, keywords))},
           R"(["a", 0, 0])", R"(["here", 0, 0])");
    });
  };
  for (const std::string& found : {message("MultiHeadAttention", R"("strange": 1)"),
                                   message("MultiHeadAttention", R"("use_causal_mask": "strange")"),
                                   message("Identity", R"("strange": [1, 2])")}) {
    EXPECT_THAT(found, HasSubstr("'here'"));
    EXPECT_THAT(found, HasSubstr("strange"));
  }
}

// ---- Operators of Keras 3, which are not layers in Keras.

// A model with inputs "a" and "b" and one operator "op" of this class.
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

TEST(FunctionalReaderTest, OperatorsOfTwoTensorsAreRead) {
  const std::string both = keras3("a") + ", " + keras3("b");
  EXPECT_EQ(of_operator(with_operator("Add", both)), (Values{9, 2}));
  EXPECT_EQ(of_operator(with_operator("Subtract", both)), (Values{3, -6}));
  EXPECT_EQ(of_operator(with_operator("Multiply", both)), (Values{18, -8}));
  EXPECT_EQ(of_operator(with_operator("Maximum", both)), (Values{6, 4}));
  EXPECT_EQ(of_operator(with_operator("Minimum", both)), (Values{3, -2}));
  EXPECT_EQ(of_operator(with_operator("Concatenate", "[" + both + "]", R"("axis": 1)")),
            (Values{6, -2, 3, 4}));
}

TEST(FunctionalReaderTest, OperatorsOfATensorAndAConstantAreRead) {
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

TEST(FunctionalReaderTest, OperatorsOfOneTensorAreRead) {
  EXPECT_EQ(of_operator(with_operator("Relu", keras3("a"))), (Values{6, 0}));
  EXPECT_EQ(of_operator(with_operator("Negative", keras3("a"))), (Values{-6, 2}));
  EXPECT_EQ(of_operator(with_operator("Reshape", keras3("a"), R"("newshape": [-1, 2])")),
            (Values{6, -2}));
}

// Each of these arguments changes the result.
TEST(FunctionalReaderTest, OperatorsUseAllArguments) {
  const std::string a = keras3("a");  // {6, -2}
  const Values celu = of_operator(with_operator("Celu", a, R"("alpha": 0.5)"));
  EXPECT_FLOAT_EQ(celu[1], 0.5F * (std::exp(-4.0F) - 1));
  EXPECT_EQ(of_operator(with_operator("Max", a, R"("axis": 1, "keepdims": true, "initial": 7)")),
            (Values{7}));
  const Values whole = of_operator(with_operator("Softmax", a, R"("axis": null)"));
  EXPECT_FLOAT_EQ(whole[1], 1 / (1 + std::exp(8.0F)));
  EXPECT_EQ(
      with_operator("Cumsum", a, R"("axis": 1, "dtype": "int32")")->outputs().tensor().dtype(),
      DType::kInt32);
  EXPECT_EQ(
      with_operator("Prod", a, R"("axis": 1, "dtype": "float64")")->outputs().tensor().dtype(),
      DType::kFloat64);
  EXPECT_EQ(with_operator("ZerosLike", a + R"(, "int64")")->outputs().tensor().dtype(),
            DType::kInt64);
  const Values large = of_operator(with_operator("Normalize", a, R"("axis": -1, "epsilon": 20)"));
  EXPECT_FLOAT_EQ(large[0], 6.0F / 20);
}

TEST(FunctionalReaderTest, UnknownArgumentsOfOperatorsAreRejectedByName) {
  for (const char* name : {"Mean", "Relu", "Add"}) {
    EXPECT_THAT(message_of<NotImplementedError>([&] {
                  with_operator(name, keras3("a") + (name[0] == 'A' ? ", 1" : ""),
                                R"("strange": 1)");
                }),
                testing::AllOf(HasSubstr(name), HasSubstr("strange=1")));
  }
}

TEST(FunctionalReaderTest, LegacyOperatorsHaveSeparateArguments) {
  const std::string both =
      "[{\"args\": [" + keras3("a") + ", " + keras3("b") + "], \"kwargs\": {}}]";
  const Functional model = read({input("a"), input("b"), layer("op", "Multiply", "", both)},
                                R"([["a", 0, 0], ["b", 0, 0]])", R"(["op", 0, 0])");
  EXPECT_EQ(of_operator(model), (Values{18, -8}));
}

TEST(FunctionalReaderTest, OperatorsWithoutALayerAreRejectedByName) {
  for (const char* name : {"Bincount", "Histogram"}) {
    EXPECT_THAT(message_of<NotImplementedError>(
                    [&] { with_operator(name, keras3("a") + ", " + keras3("b")); }),
                HasSubstr(name));
  }
}

}  // namespace keel::functional_reader_test
