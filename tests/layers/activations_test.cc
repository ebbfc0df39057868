#include "layers/activations.h"

#include <cmath>

#include "gtest/gtest.h"

#include "autodiff/ops.h"
#include "autodiff/tape.h"
#include "tests/layers/golden/activations_golden.h"

namespace keel {
namespace {

void expect_near(const Tensor& received, const std::vector<float>& expected,
                 const std::string& of) {
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_NEAR(received.data<float>()[i], expected[i], 2e-6 + 1e-5 * std::abs(expected[i]))
        << of << ", element " << i;
  }
}

void expect_golden(const auto& golden, const Tensor& x, const Tensor& coef) {
  GradientTape tape;
  tape.watch(x);
  const Tensor y = activations::get(golden.name)(x);
  const Tensor sum = ops::sum(y * coef);
  expect_near(y, golden.y, golden.name);
  expect_near(tape.input_gradient(sum, {x})[0].dense(), golden.grad_x, golden.name + "'");
}

TEST(ActivationsTest, AgreeWithKerasInValuesAndGradients) {
  const Tensor x = Tensor::from(testing_support::kActivationX, {29});
  const Tensor coef = Tensor::from(testing_support::kActivationCoef, {29});
  for (const auto& golden : testing_support::kActivations) expect_golden(golden, x, coef);
}

TEST(ActivationsTest, OverRowsAgreeWithKeras) {
  for (const auto& golden : testing_support::kRowActivations) {
    expect_golden(golden, Tensor::from(golden.x, {4, 5}), Tensor::from(golden.coef, {4, 5}));
  }
}

TEST(ActivationsTest, KeepPrecisionNearZero) {
  const Tensor x = Tensor::from<float>({-1e-6F}, {1});
  EXPECT_NEAR(activations::get("elu")(x).item<float>(), -1e-6, 1e-12);
}

TEST(ActivationsTest, OldNamesMeanTheSame) {
  const Tensor x = Tensor::from<float>({-1, 0.5, 2}, {3});
  EXPECT_EQ(activations::get("swish")(x).to_vector<float>(),
            activations::get("silu")(x).to_vector<float>());
  EXPECT_EQ(activations::get("hard_swish")(x).to_vector<float>(),
            activations::get("hard_silu")(x).to_vector<float>());
}

TEST(ActivationsTest, ComputeInDoublePrecisionToo) {
  const Tensor x = Tensor::from<double>({-1, 7}, {2});
  EXPECT_EQ(activations::get("relu6")(x).to_vector<double>(), (std::vector<double>{0, 6}));
  EXPECT_NEAR(activations::get("gelu")(x).data<double>()[0], -0.15865525393145707, 1e-12);
}

TEST(ActivationsTest, RejectsUnknownNames) {
  EXPECT_THROW(activations::get("rleu"), ValueError);
  EXPECT_THROW(Activation("rleu"), ValueError);
}

TEST(ActivationsTest, AreWrittenByName) {
  Activation read = "linear";
  decode(encode(Activation("relu")), read);
  EXPECT_EQ(read.name(), "relu");
}

TEST(ActivationsTest, ReadsTheFormsKerasWrites) {
  Activation read = "relu";
  decode(Config(), read);
  EXPECT_TRUE(read.is_linear());
  decode(parse_json(R"({"module": "builtins", "class_name": "function", "config": "tanh"})"), read);
  EXPECT_EQ(read.name(), "tanh");
  const Config object = parse_json(R"({"class_name": "LeakyReLU", "config": {"alpha": 0.1}})");
  EXPECT_THROW(decode(object, read), NotImplementedError);
}

TEST(ActivationsTest, OwnFunctionsAreKnownOnceAdded) {
  const auto twice = [](const Tensor& x) { return ops::scale(x, 2); };
  EXPECT_EQ(Activation("own", twice)(Tensor::scalar<float>(3)).item<float>(), 6);
  activations::add("ActivationsTest.twice", twice);
  EXPECT_EQ(Activation("ActivationsTest.twice")(Tensor::scalar<float>(3)).item<float>(), 6);
  EXPECT_THROW(activations::add("ActivationsTest.twice", twice), ValueError);
  EXPECT_THROW(activations::add("relu", twice), ValueError);
}

}  // namespace
}  // namespace keel
