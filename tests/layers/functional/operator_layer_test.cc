// Tests layers/functional/internal/graph_operators.cc, operator_arguments.cc,
// operator_functions.cc, operator_layer.cc, operator_placeholder.cc and tensorflow_nodes.cc.
#include <keel/layers/functional/internal/operator_layer.h>

#include <cmath>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/expectations.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::operator_layer_test {

using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::floats;
using testing_support::message_of;
using testing_support::values_of;
using Floats = std::vector<float>;

// A graph of Keras 2.15 with an input "x" [batch, 2, 3] and operators of TensorFlow. Each is
// {name, function, call}.
struct Op {
  const char *name, *function, *call;
};
Functional graph(const std::vector<Op>& operators) {
  std::string layers = R"({"class_name": "InputLayer", "name": "x", "config": {"name": "x",
      "batch_input_shape": [null, 2, 3], "dtype": "float32", "sparse": false, "ragged": false},
      "inbound_nodes": []})";
  for (const Op& op : operators) {
    const bool slices = std::string(op.function) == "__operators__.getitem";
    layers += str(R"(, {"class_name": ")", slices ? "SlicingOpLambda" : "TFOpLambda",
                  R"(", "config": {"name": ")", op.name,
                  R"(", "trainable": true, "dtype": "float32", "function": ")", op.function,
                  R"("}, "name": ")", op.name, R"(", "inbound_nodes": [)", op.call, "]}");
  }
  const auto model = layers::deserialize(parse_json(
      R"({"class_name": "Functional", "config": {"name": "m", "trainable": true, "layers": [)" +
      layers + R"(], "input_layers": [["x", 0, 0]], "output_layers": [[")" + operators.back().name +
      R"(", 0, 0]]}})"));
  return {kAdopt, std::dynamic_pointer_cast<FunctionalModel>(model.shared())};
}

const Floats kX = {1, -2, 3, 4, 5, -6};

// The values of the graph, which its config also gives.
Floats result(const std::vector<Op>& operators, const Shape& shape) {
  const Functional model = graph(operators);
  EXPECT_EQ(model->outputs().tensor().shape(), Shape{kUnknown} + shape.without(0));
  const Tensor x = floats(kX, {1, 2, 3});
  const Tensor y = model(x);
  EXPECT_EQ(y.shape(), shape);
  const LayerHandle<Layer> copy = layers::deserialize(layers::serialize(*model));
  EXPECT_EQ(values_of(copy(Tensors(x))), values_of(y));
  return values_of(y);
}

TEST(OperatorLayerTest, ReductionsOfTensorFlowAreRead) {
  const auto reduced = [](const char* function, const char* keywords, const Shape& shape) {
    const std::string call = str(R"(["x", 0, 0, )", keywords, "]");
    return result({{"tf.reduce", function, call.c_str()}}, shape);
  };
  EXPECT_EQ(reduced("math.reduce_sum", R"({"axis": 1})", {1, 3}), (Floats{5, 3, -3}));
  EXPECT_EQ(
      reduced("math.reduce_max", R"({"axis": [1, 2], "keepdims": true, "name": null})", {1, 1, 1}),
      (Floats{5}));
  expect_near(reduced("math.reduce_mean", R"({"axis": -1, "keepdims": false})", {1, 2}),
              {2 / 3.0F, 1}, {.absolute = 1e-6});
  expect_near(reduced("nn.softmax", R"({"axis": 1})", {1, 2, 3}),
              {.0474259F, .0009111F, .9998766F, .9525741F, .9990889F, .0001234F},
              {.absolute = 1e-6});
}

// y = x - mean, z = y[:, 0, 1:], and the concatenation of z and 2 - z.
TEST(OperatorLayerTest, ArithmeticSlicesAndListsOfTensorsAreRead) {
  const std::vector<Op> operators = {
      {"tf.math.reduce_mean", "math.reduce_mean", R"(["x", 0, 0, {"axis": 2, "keepdims": true}])"},
      {"tf.math.subtract", "math.subtract",
       R"(["x", 0, 0, {"y": ["tf.math.reduce_mean", 0, 0], "name": null}])"},
      {"tf.__operators__.getitem", "__operators__.getitem",
       R"(["tf.math.subtract", 0, 0, {"slice_spec": [{"start": null, "stop": null, "step": null}, 0,
           {"start": 1, "stop": null, "step": null}]}])"},
      {"tf.math.subtract_1", "math.subtract",
       R"(["_CONSTANT_VALUE", -1, 2.0, {"y": ["tf.__operators__.getitem", 0, 0], "name": null}])"},
      {"tf.concat", "concat",
       R"([["tf.__operators__.getitem", 0, 0, {"axis": -1}],
           ["tf.math.subtract_1", 0, 0, {"axis": -1}]])"}};
  expect_near(result(operators, {1, 4}), {-8 / 3.0F, 7 / 3.0F, 14 / 3.0F, -1 / 3.0F},
              {.absolute = 1e-6});
}

TEST(OperatorLayerTest, ShapesAreChangedAsInTensorFlow) {
  EXPECT_EQ(result({{"t", "transpose", R"(["x", 0, 0, {"perm": [0, 2, 1]}])"}}, {1, 3, 2}),
            (Floats{1, 4, -2, 5, 3, -6}));
  EXPECT_EQ(result({{"t", "expand_dims", R"(["x", 0, 0, {"axis": 1}])"},
                    {"s", "squeeze", R"(["t", 0, 0, {"axis": [1]}])"}},
                   {1, 2, 3}),
            kX);
  EXPECT_EQ(result({{"t", "tile", R"(["x", 0, 0, {"multiples": [1, 1, 2]}])"}}, {1, 2, 6}),
            (Floats{1, -2, 3, 1, -2, 3, 4, 5, -6, 4, 5, -6}));
  EXPECT_EQ(result({{"t", "reshape", R"(["x", 0, 0, {"shape": [-1, 6]}])"}}, {1, 6}), kX);
  EXPECT_EQ(
      result({{"t", "linalg.matmul", R"(["x", 0, 0, {"b": ["x", 0, 0], "transpose_b": true}])"}},
             {1, 2, 2}),
      (Floats{14, -24, -24, 77}));
  // [..., newaxis, -1] and [:, ::-1]
  EXPECT_EQ(result({{"t", "__operators__.getitem",
                     R"(["x", 0, 0, {"slice_spec": [{"class_name": "__ellipsis__"}, null, -1]}])"}},
                   {1, 2, 1}),
            (Floats{3, -6}));
  EXPECT_EQ(result({{"t", "__operators__.getitem",
                     R"(["x", 0, 0, {"slice_spec": [{"start": null, "stop": null, "step": null},
                         {"start": null, "stop": null, "step": -1}]}])"}},
                   {1, 2, 3}),
            (Floats{4, 5, -6, 1, -2, 3}));
}

TEST(OperatorLayerTest, CumulativeSumsMayBeExclusiveAndReverse) {
  const auto sums = [](const char* keywords) {
    const std::string call = str(R"(["x", 0, 0, )", keywords, "]");
    return result({{"c", "math.cumsum", call.c_str()}}, {1, 2, 3});
  };
  EXPECT_EQ(sums(R"({"axis": 2, "exclusive": true, "reverse": false})"),
            (Floats{0, 1, -1, 0, 4, 9}));
  EXPECT_EQ(sums(R"({"axis": -1, "exclusive": false, "reverse": true})"),
            (Floats{2, 1, 3, 3, -1, -6}));
  EXPECT_EQ(sums(R"({"axis": 2, "exclusive": true, "reverse": true})"),
            (Floats{1, 3, 0, -1, -6, 0}));
}

// The indices are x[:, :, 0] < 2, which is {1, 0}.
TEST(OperatorLayerTest, GatherHasBatchDimensions) {
  const auto gathered = [](const char* keywords, const Shape& shape) {
    const std::string call = str(R"(["x", 0, 0, {"indices": ["i", 0, 0], )", keywords, "}]");
    return result({{"s", "__operators__.getitem", R"(["x", 0, 0, {"slice_spec": [
                       {"start": null, "stop": null, "step": null},
                       {"start": null, "stop": null, "step": null}, 0]}])"},
                   {"l", "math.less", R"(["s", 0, 0, {"y": 2}])"},
                   {"i", "cast", R"(["l", 0, 0, {"dtype": "int32"}])"},
                   {"g", "gather", call.c_str()}},
                  shape);
  };
  EXPECT_EQ(gathered(R"("batch_dims": 1)", {1, 2, 3}), (Floats{4, 5, -6, 1, -2, 3}));
  EXPECT_EQ(gathered(R"("batch_dims": 1, "axis": 2, "validate_indices": true)", {1, 2, 2}),
            (Floats{-2, 1, 5, 4}));
  EXPECT_EQ(gathered(R"("batch_dims": 2, "axis": null)", {1, 2}), (Floats{-2, 4}));
  EXPECT_EQ(gathered(R"("batch_dims": -1, "axis": -1)", {1, 2, 2}), (Floats{-2, 1, 5, 4}));
  const Functional plain =
      graph({{"g", "gather", R"(["x", 0, 0, {"indices": [2, 0], "axis": 2, "batch_dims": 0}])"}});
  EXPECT_EQ(values_of(plain(floats(kX, {1, 2, 3}))), (Floats{3, 1, -6, 4}));
}

TEST(OperatorLayerTest, ArgumentsOfTensorFlowSetTheResult) {
  const auto dtype_of = [](const char* function, const char* call) {
    return graph({{"t", function, call}})->outputs().tensor().dtype();
  };
  EXPECT_EQ(dtype_of("math.argmax", R"(["x", 0, 0, {"axis": 1}])"), DType::kInt64);
  EXPECT_EQ(dtype_of("math.argmax", R"(["x", 0, 0, {"axis": 1, "output_type": "int32"}])"),
            DType::kInt32);
  EXPECT_EQ(dtype_of("zeros_like", R"(["x", 0, 0, {"dtype": "int32"}])"), DType::kInt32);
  const Functional parts =
      graph({{"s", "split", R"(["x", 0, 0, {"num_or_size_splits": [1, -1], "axis": 2}])"},
             {"y", "identity", R"(["s", 0, 1])"}});
  EXPECT_EQ(values_of(parts(floats(kX, {1, 2, 3}))), (Floats{-2, 3, 5, -6}));
  const Functional hot =
      graph({{"l", "math.argmax", R"(["x", 0, 0, {"axis": 2}])"},
             {"y", "one_hot", R"(["l", 0, 0, {"depth": 3, "on_value": 5, "off_value": -1,
                                              "dtype": "float32"}])"}});
  EXPECT_EQ(values_of(hot(floats(kX, {1, 2, 3}))), (Floats{-1, -1, 5, -1, 5, -1}));
  // The adjoint of a real matrix is its transpose, whatever the other flag is.
  EXPECT_EQ(result({{"t", "linalg.matmul", R"(["x", 0, 0, {"b": ["x", 0, 0], "transpose_b": false,
                         "adjoint_b": true, "b_is_sparse": false}])"}},
                   {1, 2, 2}),
            (Floats{14, -24, -24, 77}));
  const Floats tanh =
      result({{"g", "nn.gelu", R"(["x", 0, 0, {"approximate": true}])"}}, {1, 2, 3});
  EXPECT_NEAR(tanh[0], .8411920F, 1e-6);
}

TEST(OperatorLayerTest, UnknownArgumentsAreRejectedByName) {
  const auto message = [](const char* function, const char* call) {
    return message_of<NotImplementedError>([&] { graph({{"t", function, call}}); });
  };
  EXPECT_THAT(message("math.cumsum", R"(["x", 0, 0, {"strange": 3}])"),
              testing::AllOf(HasSubstr("(t, cumsum)"), HasSubstr("strange=3")));
  EXPECT_THAT(message("nn.bias_add", R"(["x", 0, 0, {"bias": [1, 2, 3], "data_format": "NC..."}])"),
              HasSubstr("data_format"));
  EXPECT_THAT(
      message("linalg.matmul", R"(["x", 0, 0, {"b": ["x", 0, 0], "output_type": "int32"}])"),
      HasSubstr("output_type"));
  EXPECT_EQ(
      result({{"t", "nn.bias_add", R"(["x", 0, 0, {"bias": [1, 2, 3], "data_format": "N...C"}])"}},
             {1, 2, 3}),
      (Floats{2, 0, 6, 5, 7, -3}));
  EXPECT_THAT(message_of<NotImplementedError>([] {
                OperatorLayer({.function = "mean", .arguments = Config::dict({{"strange", 1}})});
              }),
              HasSubstr("'strange'"));
}

// Rescaling computes floats.
TEST(OperatorLayerTest, ArithmeticOfIntegersKeepsTheirDtype) {
  const Functional model = graph({{"c", "cast", R"(["x", 0, 0, {"dtype": "int32"}])"},
                                  {"a", "__operators__.add", R"(["c", 0, 0, {"y": 2}])"}});
  EXPECT_EQ(model->outputs().tensor().dtype(), DType::kInt32);
  EXPECT_EQ(model(floats(kX, {1, 2, 3})).to_vector<int32_t>(),
            (std::vector<int32_t>{3, 0, 5, 6, 7, -4}));
}

TEST(OperatorLayerTest, FunctionsOfElementsAreRead) {
  EXPECT_EQ(result({{"t", "clip_by_value",
                     R"(["x", 0, 0, {"clip_value_min": -1, "clip_value_max": 3.5}])"}},
                   {1, 2, 3}),
            (Floats{1, -1, 3, 3.5F, 3.5F, -1}));
  EXPECT_EQ(result({{"t", "math.pow", R"(["x", 0, 0, {"y": 2}])"}}, {1, 2, 3}),
            (Floats{1, 4, 9, 16, 25, 36}));
  EXPECT_EQ(result({{"t", "math.greater", R"(["x", 0, 0, {"y": 2}])"},
                    {"u", "cast", R"(["t", 0, 0, {"dtype": "float32"}])"}},
                   {1, 2, 3}),
            (Floats{0, 0, 1, 1, 1, 0}));
  expect_near(result({{"t", "nn.gelu", R"(["x", 0, 0, {}])"}}, {1, 2, 3}),
              {.8413447F, -.0455003F, 2.9959503F, 3.9998733F, 4.9999986F, 0}, {.absolute = 1e-6});
}

// Operators that layers of Keras compute can be saved for Keras.
TEST(OperatorLayerTest, LayersOfKerasReplaceOperatorsWherePossible) {
  const Functional model =
      graph({{"a", "__operators__.add", R"(["x", 0, 0, {"y": 1.5, "name": null}])"},
             {"b", "nn.relu", R"(["a", 0, 0, {"name": null}])"},
             {"c", "math.multiply", R"(["a", 0, 0, {"y": ["b", 0, 0], "name": null}])"}});
  std::vector<std::string> classes;
  for (const auto& layer : model->layers()) classes.push_back(layer->class_name());
  EXPECT_THAT(classes, testing::ElementsAre("InputLayer", "Rescaling", "Activation", "Multiply"));
  EXPECT_EQ(values_of(model(floats(kX, {1, 2, 3}))), (Floats{6.25F, 0, 20.25F, 30.25F, 42.25F, 0}));
}

TEST(OperatorLayerTest, SeveralResultsAndGradientsPass) {
  const Functional model =
      graph({{"s", "split", R"(["x", 0, 0, {"num_or_size_splits": 3, "axis": 2}])"},
             {"y", "math.multiply", R"(["s", 0, 0, {"y": ["s", 0, 2]}])"},
             {"z", "math.reduce_sum", R"(["y", 0, 0, {"axis": [1, 2]}])"}});
  EXPECT_EQ(values_of(model(floats(kX, {1, 2, 3}))), Floats{3 - 24});
  GradientTape tape;
  const Tensor x = floats(kX, {1, 2, 3});
  tape.watch(x);
  const Tensor y = model(x);
  EXPECT_EQ(values_of(tape.input_gradient(ops::sum(y), {x})[0].dense()),
            (Floats{3, 0, 1, -6, 0, 4}));
}

// A node of TensorFlow 2.1 with the input "x" [batch, 2, 3], called with it `count` times.
Floats of_node(const std::string& node, const std::string& constants, int count = 1) {
  std::string quoted;
  for (const char c : node) {
    if (c != '\n') quoted += c == '"' ? "\\\"" : std::string(1, c);
  }
  std::string call;
  for (int i = 0; i < count; ++i) call += str(i == 0 ? "" : ", ", R"(["x", 0, 0, {}])");
  const LayerHandle<Layer> model = layers::deserialize(parse_json(
      R"({"class_name": "Model", "config": {"name": "m", "layers": [
       {"class_name": "InputLayer", "name": "x", "config": {"name": "x",
        "batch_input_shape": [null, 2, 3], "dtype": "float32", "sparse": false, "ragged": false},
        "inbound_nodes": []},
       {"class_name": "TensorFlowOpLayer", "name": "op", "config": {"name": "op",
        "trainable": true, "dtype": "float32", "node_def": ")" +
      quoted + R"(", "constants": )" + constants + R"(}, "inbound_nodes": [[)" + call + R"(]]}],
       "input_layers": [["x", 0, 0]], "output_layers": [["op", 0, 0]]}})"));
  return values_of(model(Tensors(floats(kX, {1, 2, 3}))));
}

TEST(OperatorLayerTest, NodesOfTensorFlowAreRead) {
  EXPECT_EQ(of_node(R"({"name": "Mul", "op": "Mul", "input": ["x", "Mul/y"],
                        "attr": {"T": {"type": "DT_FLOAT"}}})",
                    R"({"1": 2.0})"),
            (Floats{2, -4, 6, 8, 10, -12}));
  EXPECT_EQ(of_node(R"({"name": "sub", "op": "Sub", "input": ["sub/x", "x"], "attr": {}})",
                    R"({"0": 1.0})"),
            (Floats{0, 3, -2, -3, -4, 7}));
  EXPECT_EQ(of_node(R"({"name": "AddV2", "op": "AddV2", "input": ["x", "x"]})", "{}", 2),
            (Floats{2, -4, 6, 8, 10, -12}));
  EXPECT_EQ(of_node(R"({"name": "Sum", "op": "Sum", "input": ["x", "Sum/axes"],
                        "attr": {"keep_dims": {"b": true}}})",
                    R"({"1": [2]})"),
            (Floats{2, 3}));
  EXPECT_EQ(
      of_node(R"({"name": "c", "op": "ConcatV2", "input": ["x", "x", "a"]})", R"({"2": 1})", 2)
          .size(),
      12U);
  // x[:, 1, ::2]
  EXPECT_EQ(of_node(R"({"name": "s", "op": "StridedSlice", "input": ["x", "b", "e", "s"],
                        "attr": {"begin_mask": {"i": "5"}, "end_mask": {"i": "5"},
                                 "shrink_axis_mask": {"i": "2"}, "new_axis_mask": {"i": "0"}}})",
                    R"({"1": [0, 1, 0], "2": [0, 2, 0], "3": [1, 1, 2]})"),
            (Floats{4, -6}));
  EXPECT_EQ(of_node(R"({"name": "c", "op": "Cumsum", "input": ["x", "a"],
                        "attr": {"exclusive": {"b": true}, "reverse": {"b": true},
                                 "Tidx": {"type": "DT_INT32"}}})",
                    R"({"1": 2})"),
            (Floats{1, 3, 0, -1, -6, 0}));
  EXPECT_THAT(message_of<NotImplementedError>([] {
                of_node(R"({"name": "e", "op": "Exp", "input": ["x"],
                            "attr": {"strange": {"b": true}}})",
                        "{}");
              }),
              HasSubstr("strange"));
  EXPECT_THAT(message_of<NotImplementedError>(
                  [] { of_node(R"({"name": "e", "op": "Exp", "input": ["x", "x"]})", "{}", 2); }),
              HasSubstr("2 inputs"));
  EXPECT_THAT(message_of<NotImplementedError>(
                  [] { of_node(R"({"name": "s", "op": "Strange", "input": ["x"]})", "{}"); }),
              HasSubstr("Strange"));
}

TEST(OperatorLayerTest, UnknownFunctionsAreRejectedByName) {
  EXPECT_THAT(message_of<NotImplementedError>(
                  [] { graph({{"tf.strange", "image.strange", R"(["x", 0, 0, {}])"}}); }),
              testing::AllOf(HasSubstr("tf.strange"), HasSubstr("strange")));
  EXPECT_THAT(message_of<ValueError>(
                  [] { graph({{"t", "clip_by_value", R"(["x", 0, 0, {"clip_value_min": 0}])"}}); }),
              HasSubstr("'x_max' is missing"));
}

TEST(OperatorLayerTest, FunctionsMustBeKnown) {
  EXPECT_THAT(message_of<NotImplementedError>([] { OperatorLayer({.function = "strange"}); }),
              HasSubstr("strange"));
}

TEST(OperatorLayerTest, Contract) {
  expect_layer_contract({.class_name = "Operator",
                         .config = R"({"function": "mean", "arguments": {
                             "x": {"__tensor_number__": 0}, "axis": 1}})",
                         .inputs = testing_support::float_spec({2, 3}),
                         .output = testing_support::float_spec({2})});
}

TEST(OperatorLayerTest, DefaultsAreThoseOfTensorFlow) {
  EXPECT_EQ(result({{"c", "math.cumsum", R"(["x", 0, 0, {"axis": 1}])"}}, {1, 2, 3}),
            (Floats{1, -2, 3, 5, 3, -3}));
  EXPECT_EQ(values_of(graph({{"c", "math.cumsum", R"(["x", 0, 0, {}])"}})(floats(kX, {1, 2, 3}))),
            kX);
  const Floats unit = result({{"n", "math.l2_normalize", R"(["x", 0, 0, {}])"}}, {1, 2, 3});
  EXPECT_NEAR(unit[0], 1 / std::sqrt(91.0), 1e-6);
}

TEST(OperatorLayerTest, UnsupportedArgumentsAreRejected) {
  EXPECT_THROW(
      graph({{"i", "__operators__.getitem", R"(["x", 0, 0, {"slice_spec": ["x", 0, 0]}])"}}),
      NotImplementedError);
  EXPECT_THROW(of_node(R"({"name": "b", "op": "BiasAdd", "input": ["x", "b"],
                           "attr": {"data_format": {"s": "TkNIVw=="}}})",
                       R"({"1": [1, 2, 3]})"),
               NotImplementedError);
}

}  // namespace keel::operator_layer_test
