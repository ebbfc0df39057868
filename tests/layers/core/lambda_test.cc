#include <keel/layers/core/lambda.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::lambda_test {

using layers::Lambda;
using layers::register_lambda_function;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::message_of;
using Floats = std::vector<float>;

Tensor one_two() { return Tensor::from<float>({1, 2}, {1, 2}); }

void register_scale() {
  register_lambda_function("lambda_test_scale", [](const Tensors& x, const LambdaCall& call) {
    const Config* const factor = call.arguments.find("factor");
    return Tensors(x.tensor() * (factor == nullptr ? 2 : factor->number()));
  });
}

TEST(LambdaTest, CallsAFunctionWithItsArguments) {
  register_scale();
  EXPECT_EQ(Lambda({.function = "lambda_test_scale"})(one_two()).to_vector<float>(),
            Floats({2, 4}));
  const Lambda triple(
      {.function = "lambda_test_scale", .arguments = Config::dict({{"factor", 3.0}})});
  const Tensor x = one_two();
  GradientTape tape;
  tape.watch(x);
  const Tensor y = triple(x);
  EXPECT_EQ(y.to_vector<float>(), Floats({3, 6}));
  EXPECT_EQ(tape.input_gradient(ops::sum(y), {x})[0].dense().to_vector<float>(), Floats({3, 3}));
}

TEST(LambdaTest, KnowsActivations) {
  const Tensor y = Lambda({.function = "relu"})(Tensor::from<float>({-1, 2}, {1, 2}));
  EXPECT_EQ(y.to_vector<float>(), Floats({0, 2}));
}

TEST(LambdaTest, TakesAndReturnsStructuresAndKnowsTraining) {
  register_lambda_function("lambda_test_both", [](const Tensors& x, const LambdaCall& call) {
    const Tensor a = x[0].tensor(), b = x[1].tensor();
    return Tensors::tuple({a + b, call.training ? a - b : b - a});
  });
  const Lambda both({.function = "lambda_test_both"});
  const Tensors x = Tensors::list({one_two(), Tensor::full<float>({1, 2}, 5)});
  EXPECT_EQ(both(x)[0].tensor().to_vector<float>(), Floats({6, 7}));
  EXPECT_EQ(both(x)[1].tensor().to_vector<float>(), Floats({4, 3}));
  EXPECT_EQ(both(x, {.training = true})[1].tensor().to_vector<float>(), Floats({-4, -3}));
}

TEST(LambdaTest, AnOutputShapeReplacesTheSymbolicCall) {
  register_lambda_function("lambda_test_values", [](const Tensors& x, const LambdaCall&) {
    const float first = x.tensor().data<float>()[0];
    return Tensors(Tensor::full<float>({x.tensor().dim(0), 3}, first));
  });
  const Tensor x = layers::input({.shape = {2}});
  const Tensor y = Lambda({.function = "lambda_test_values", .output_shape = PartialShape(3)})(x);
  EXPECT_EQ(y.shape(), Shape({kUnknown, 3}));
  const Functional model({.inputs = x, .outputs = y});
  EXPECT_EQ(model(one_two()).to_vector<float>(), Floats({1, 1, 1}));
}

TEST(LambdaTest, OnlyAMaskFunctionMasksTheOutput) {
  register_scale();
  register_lambda_function("lambda_test_mask", [](const Tensors& x, const LambdaCall&) {
    return Tensors(ops::logical_not(x.tensor().mask()));
  });
  const Tensor x = one_two().with_mask(Tensor::from<bool>({true}, {1}));
  EXPECT_FALSE(Lambda({.function = "lambda_test_scale"})(x).mask());
  const Lambda masked({.function = "lambda_test_scale", .mask = "lambda_test_mask"});
  EXPECT_EQ(masked(x).mask().to_vector<bool>(), std::vector({false}));
}

LayerHandle<Layer> read(const std::string& config) {
  return layers::deserialize(
      Config::dict({{"class_name", "Lambda"}, {"config", parse_json(config)}}));
}

TEST(LambdaTest, ReadsTheFormsOfAllVersions) {
  register_scale();
  const Floats doubled = {2, 4};
  for (const char* text : {
           R"({"name": "a", "function": "lambda_test_scale", "function_type": "function",
               "module": "__main__", "output_shape": null, "output_shape_type": "raw",
               "output_shape_module": null, "arguments": {}})",
           R"({"name": "a", "arguments": {}, "function": {"module": "builtins",
               "class_name": "function", "config": "lambda_test_scale",
               "registered_name": "function"}})",
           R"({"name": "a", "arguments": {}, "function": {"module": "mine",
               "class_name": "function", "config": "Mine>lambda_test_scale",
               "registered_name": "Mine>lambda_test_scale"}})",
           R"({"name": "lambda_test_scale", "function": ["4wEAAA==", null, null],
               "function_type": "lambda", "output_shape": {"class_name": "__tuple__",
               "items": [2]}})",
           R"({"name": "lambda_test_scale", "arguments": {}, "function": {"class_name":
               "__lambda__", "config": {"code": "4wEAAA==", "defaults": null, "closure": null}}})",
       }) {
    SCOPED_TRACE(text);
    const auto layer = read(text);
    EXPECT_EQ(layer(one_two()).to_vector<float>(), doubled);
    // The function is written as it was read.
    const Config written = layers::serialize(*layer)["config"];
    EXPECT_EQ(written["function"], parse_json(text)["function"]);
  }
}

TEST(LambdaTest, MissingFunctionsAreNamedTogetherWithTheLayer) {
  const std::string code = message_of<NotImplementedError>(
      [] { read(R"({"name": "twice", "function": ["4wEAAAA==", null, null]})"); });
  EXPECT_THAT(code, HasSubstr("Lambda twice"));
  EXPECT_THAT(code, HasSubstr("Python code"));
  EXPECT_THAT(code, HasSubstr(R"(layers::register_lambda_function("twice", ...))"));
  const std::string unknown =
      message_of<NotImplementedError>([] { Lambda({.function = "absent", .name = "b"}); });
  EXPECT_THAT(unknown, HasSubstr("Lambda b: no function 'absent'"));
  EXPECT_THROW(Lambda(LambdaOptions{}), ValueError);
  EXPECT_THROW(read(R"({"function": {"class_name": "Dense", "config": {}}})"), TypeError);
}

TEST(LambdaTest, MeetsTheContractOfLayers) {
  register_scale();
  expect_layer_contract(
      {.class_name = "Lambda",
       .config = R"({"function": "lambda_test_scale", "arguments": {"factor": 0.5}})",
       .inputs = float_spec({2, 3}),
       .output = float_spec({2, 3})});
}

}  // namespace keel::lambda_test
