// Tests layers/activation_names.cc.
#include <keel/layers/activations.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

namespace keel::activations_test {

const std::vector<std::string> kNames = {
    "celu",           "elu",          "exponential", "gelu",        "glu",
    "hard_shrink",    "hard_sigmoid", "hard_silu",   "hard_swish",  "hard_tanh",
    "leaky_relu",     "linear",       "log_sigmoid", "log_softmax", "mish",
    "relu",           "relu6",        "selu",        "sigmoid",     "silu",
    "soft_shrink",    "softmax",      "softplus",    "softsign",    "sparse_plus",
    "sparse_sigmoid", "sparsemax",    "squareplus",  "swish",       "tanh",
    "tanh_shrink"};

// Points where every function is differentiable.
Tensor numbers() { return Tensor::from<double>({-3.7, -1.3, -.7, -.2, .1, .3, .8, 6.2}, {2, 4}); }

double sum_of_squares(const Activation& f, const Tensor& x) {
  return ops::sum(ops::square(f(x))).item<double>();
}

TEST(ActivationsTest, GradientsAgreeWithFiniteDifferences) {
  for (const std::string& name : kNames) {
    SCOPED_TRACE(name);
    const Activation f(name);
    const Tensor x = numbers();
    GradientTape tape;
    tape.watch(x);
    const Tensor y = ops::sum(ops::square(f(x)));
    const Tensor found = tape.input_gradient(y, {x})[0].dense();
    for (int64_t i = 0; i < x.size(); ++i) {
      constexpr double kStep = 1e-6;
      Tensor more = x.clone(), less = x.clone();
      more.mutable_data<double>()[i] += kStep;
      less.mutable_data<double>()[i] -= kStep;
      const double slope = (sum_of_squares(f, more) - sum_of_squares(f, less)) / (2 * kStep);
      EXPECT_NEAR(found.data<double>()[i], slope, 1e-4 * std::max(1.0, std::abs(slope)));
    }
  }
}

TEST(ActivationsTest, AcceptSymbolicBatches) {
  const Tensor x = Tensor::symbolic({.shape = {kUnknown, 4}, .dtype = DType::kFloat32});
  for (const std::string& name : kNames) {
    const Tensor y = Activation(name)(x);
    EXPECT_EQ(y.shape(), Shape({kUnknown, name == "glu" ? 2 : 4})) << name;
  }
}

TEST(ActivationsTest, AcceptTheArgumentsOfKeras) {
  const auto expect = [](const std::vector<double>& wanted, const Tensor& found) {
    ASSERT_EQ(found.size(), std::ssize(wanted));
    for (size_t i = 0; i < wanted.size(); ++i) {
      EXPECT_NEAR(found.data<double>()[i], wanted[i], 1e-9) << i;
    }
  };
  const Tensor x = Tensor::from<double>({-2, -.25, .25, 2, 9}, {5});
  expect({-.5, -.15, -.05, 2, 4}, activations::relu(x, .2, 4, .5));
  expect({0, 0, 0, 2, 9}, activations::relu(x, 0, {}, .5));
  expect({-1, -.125, .25, 2, 6}, activations::relu(x, .5, 6));
  expect({-.2, -.025, .25, 2, 9}, activations::leaky_relu(x, .1));
  expect({3 * std::expm1(-2), 3 * std::expm1(-.25), .25, 2, 9}, activations::elu(x, 3));
  expect({4 * std::expm1(-.5), 4 * std::expm1(-.0625), .25, 2, 9}, activations::celu(x, 4));
  expect({-2, 0, 0, 2, 9}, activations::hard_shrink(x, 1));
  expect({-1, 0, 0, 1, 8}, activations::soft_shrink(x, 1));
  expect({7, 7, 7, 2, 9}, activations::threshold(x, 1, 7));
  expect({.5 * (-2 + std::sqrt(5)), .5 * (-.25 + std::sqrt(1.0625)), .5 * (.25 + std::sqrt(1.0625)),
          .5 * (2 + std::sqrt(5)), .5 * (9 + std::sqrt(82))},
         activations::squareplus(x, 1));
  const Tensor rows = Tensor::from<double>({0, std::log(3), 0, 0}, {2, 2});
  expect({.5, .75, .5, .25}, activations::softmax(rows, 0));
  expect({0, .5 * std::log(3)}, activations::glu(rows, 0));
  // The results are close, but not equal.
  const double exact = activations::gelu(x).data<double>()[3];
  EXPECT_NEAR(activations::gelu(x, true).data<double>()[3], exact, 1e-3);
  EXPECT_NE(activations::gelu(x, true).data<double>()[3], exact);
}

TEST(ActivationsTest, ArgumentsAreWrittenAndRead) {
  const Tensor x = numbers();
  for (const auto& [name, arguments] : std::vector<std::pair<std::string, const char*>>{
           {"relu", R"({"negative_slope": 0.1, "max_value": 4.0, "threshold": 0.5})"},
           {"leaky_relu", R"({"negative_slope": 0.05})"},
           {"elu", R"({"alpha": 0.5})"},
           {"celu", R"({"alpha": 0.5})"},
           {"gelu", R"({"approximate": true})"},
           {"softmax", R"({"axis": 0})"},
           {"threshold", R"({"threshold": 1.0, "default_value": 0})"},
           {"squareplus", R"({"b": 1.0})"}}) {
    SCOPED_TRACE(name);
    const Activation made = activations::get(name, parse_json(arguments));
    Activation read = "linear";
    decode(encode(made), read);
    EXPECT_EQ(read.name(), name);
    EXPECT_EQ(encode(read), encode(made));
    EXPECT_EQ(read(x).to_vector<double>(), made(x).to_vector<double>());
    EXPECT_NE(read(x).to_vector<double>(), x.to_vector<double>());
  }
  EXPECT_EQ(to_json(encode(activations::get("elu", parse_json(R"({"alpha": 2.0})")))),
            R"({"module": "keras.layers", "class_name": "ELU", "config": {"alpha": 2.0}, )"
            R"("registered_name": null})");
}

TEST(ActivationsTest, RejectArgumentsOfOtherFunctions) {
  EXPECT_THROW(activations::get("relu", parse_json(R"({"alpha": 1.0})")), ValueError);
  EXPECT_THROW(activations::get("tanh", parse_json(R"({"alpha": 1.0})")), ValueError);
  EXPECT_THROW(activations::get("threshold"), ValueError);
  EXPECT_THROW(activations::glu(Tensor::zeros({2, 3})), ValueError);
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

TEST(ActivationsTest, SupportFloat64) {
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
  const auto from_json = [&](const char* json) {
    decode(parse_json(json), read);
    return encode(read);
  };
  const Config leaky =
      encode(activations::get("leaky_relu", parse_json(R"({"negative_slope": 0.1})")));
  EXPECT_EQ(from_json(R"({"class_name": "LeakyReLU", "config": {"alpha": 0.1}})"), leaky);
  EXPECT_EQ(from_json(R"({"module": "keras.layers", "class_name": "LeakyReLU", "config":
                          {"name": "leaky_re_lu", "trainable": true, "negative_slope": 0.1}})"),
            leaky);
  EXPECT_EQ(from_json(R"({"class_name": "LeakyReLU", "config": {}})")["config"]["negative_slope"],
            Config(.3));
  EXPECT_EQ(from_json(R"({"class_name": "Activation", "config": {"activation": "mish"}})"),
            Config("mish"));
  EXPECT_THROW(from_json(R"({"class_name": "PReLU", "config": {}})"), NotImplementedError);
}

TEST(ActivationsTest, UserFunctionsAreKnownOnceAdded) {
  const auto twice = [](const Tensor& x) { return ops::scale(x, 2); };
  EXPECT_EQ(Activation("own", twice)(Tensor::scalar<float>(3)).item<float>(), 6);
  activations::add("ActivationsTest.twice", twice);
  EXPECT_EQ(Activation("ActivationsTest.twice")(Tensor::scalar<float>(3)).item<float>(), 6);
  EXPECT_THROW(activations::add("ActivationsTest.twice", twice), ValueError);
  EXPECT_THROW(activations::add("relu", twice), ValueError);
}

TEST(ActivationsTest, OnlyBuiltInFunctionsAreSavedByName) {
  EXPECT_TRUE(Activation("relu").is("relu"));
  EXPECT_FALSE(Activation("relu").is("elu"));
  EXPECT_FALSE(Activation("relu", [](const Tensor& x) { return x; }).is("relu"));
  EXPECT_FALSE(activations::get("relu", Config::dict({{"max_value", 6.0}})).is("relu"));
}

}  // namespace keel::activations_test
