// One table of cases for all ops. Compares gradients and second derivatives to finite differences,
// symbolic to eager results, and float32 to float64.
// Tests autodiff/ops/probability.cc.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <random>
#include <regex>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>

#include "tests/support/expectations.h"
#include "tests/support/tensors.h"

namespace keel::ops_gradient_test {

using ops::Combiner;
using testing_support::expect_near;
using testing_support::ids;
using Inputs = std::vector<Tensor>;

struct OpCase {
  std::string op;    // name in ops.h
  std::string name;  // name of the case
  Inputs inputs;     // float64 if differentiated
  std::function<Tensor(const Inputs&)> function;
  std::vector<size_t> batched = {};  // inputs whose first dimension may be unknown

  friend std::ostream& operator<<(std::ostream& out, const OpCase& c) { return out << c.name; }
};

Tensor uniform(const Shape& shape, double low = -1, double high = 1) {
  std::mt19937_64 generator(static_cast<uint64_t>(shape.size()) * 1009 + shape.rank());
  std::uniform_real_distribution<double> numbers(low, high);
  std::vector<double> values(shape.size());
  for (double& v : values) v = numbers(generator);
  return Tensor::from(values, shape);
}

// Returns unordered numbers that differ by at least 0.1 from each other and are not 0.
Tensor distinct(const Shape& shape, double offset = 0.05) {
  const int64_t n = shape.size();
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = 0.1 * static_cast<double>(i - n / 2) + offset;
  std::mt19937_64 generator(7);
  std::shuffle(values.begin(), values.end(), generator);
  return Tensor::from(values, shape);
}

std::vector<OpCase> elementwise_cases() {
  std::vector<OpCase> out;
  const auto unary = [&](const std::string& op, Tensor (*f)(const Tensor&), const Tensor& x) {
    out.push_back({op, op, {x}, [f](const Inputs& in) { return f(in[0]); }, {0}});
  };
  const auto binary = [&](const std::string& op, Tensor (*f)(const Tensor&, const Tensor&),
                          double low, double high) {
    const auto call = [f](const Inputs& in) { return f(in[0], in[1]); };
    const auto add = [&](const std::string& name, const Shape& a, const Shape& b,
                         std::vector<size_t> batched) {
      const Tensor x = uniform(a, low, high);
      const Tensor y = uniform(b, low + 0.013, high + 0.013);
      out.push_back({op, op + name, {x, y}, call, std::move(batched)});
    };
    add("SameShape", {3, 4}, {3, 4}, {0, 1});
    add("Row", {3, 4}, {4}, {0});
    add("Column", {3, 4}, {3, 1}, {0, 1});
    add("Scalar", {3, 2}, {}, {0});
    add("Outer", {2, 1, 3}, {4, 1}, {0});
  };
  binary("add", ops::add, -1, 1);
  binary("subtract", ops::subtract, -1, 1);
  binary("multiply", ops::multiply, -1, 1);
  binary("divide", ops::divide, 0.5, 2);
  binary("divide_no_nan", ops::divide_no_nan, 0.5, 2);
  binary("maximum", ops::maximum, -1, 1);
  binary("minimum", ops::minimum, -1, 1);
  binary("pow", ops::pow, 0.5, 2);
  unary("negative", ops::negative, uniform({3, 4}));
  unary("abs", ops::abs, distinct({3, 4}));
  unary("square", ops::square, uniform({3, 4}));
  unary("sqrt", ops::sqrt, uniform({3, 4}, 0.5, 2));
  unary("rsqrt", ops::rsqrt, uniform({3, 4}, 0.5, 2));
  unary("exp", ops::exp, uniform({3, 4}));
  unary("log", ops::log, uniform({3, 4}, 0.5, 2));
  unary("log1p", ops::log1p, uniform({3, 4}, -0.5, 2));
  unary("erf", ops::erf, uniform({3, 4}));
  unary("tanh", ops::tanh, uniform({3, 4}));
  unary("sigmoid", ops::sigmoid, uniform({3, 4}, -2, 2));
  unary("softplus", ops::softplus, uniform({3, 4}, -2, 2));
  unary("relu", ops::relu, distinct({3, 4}));
  const auto with = [&](const std::string& op, const Tensor& x, auto f) {
    out.push_back({op, op, {x}, [f](const Inputs& in) { return f(in[0]); }, {0}});
  };
  with("scale", uniform({3, 4}), [](const Tensor& x) { return ops::scale(x, -2.5); });
  with("shift", uniform({3, 4}), [](const Tensor& x) { return ops::shift(x, 1.5); });
  with("clip_by_value", distinct({3, 4}),
       [](const Tensor& x) { return ops::clip_by_value(x, -0.3, 0.4); });
  with("cast", uniform({3, 4}), [](const Tensor& x) {
    return ops::cast(ops::cast(ops::square(x), DType::kFloat64), x.dtype());
  });
  const Tensor condition = Tensor::from<bool>({true, false, true, true, false, false}, {2, 3});
  const auto where = [](const Inputs& in) { return ops::where(in[0], in[1], in[2]); };
  out.push_back(
      {"where", "where", {condition, uniform({2, 3}), uniform({2, 3}, 2, 3)}, where, {0, 1, 2}});
  out.push_back(
      {"where", "whereBroadcast", {condition, uniform({3}), uniform({4, 2, 1})}, where, {2}});
  return out;
}

std::vector<OpCase> reduction_cases() {
  std::vector<OpCase> out;
  const auto reduce = [&](const std::string& op, auto f) {
    const auto add = [&](const std::string& name, const Shape& x, std::vector<int> axes,
                         bool keepdims) {
      out.push_back({op,
                     op + name,
                     {distinct(x)},
                     [=](const Inputs& in) { return f(in[0], axes, keepdims); },
                     {0}});
    };
    add("All", {2, 3, 2}, {}, false);
    add("Last", {3, 4}, {-1}, false);
    add("First", {3, 4}, {0}, true);
    add("Middle", {2, 3, 4}, {1}, false);
    add("Outside", {2, 3, 4}, {0, -1}, true);
  };
  reduce("sum", ops::sum);
  reduce("mean", ops::mean);
  reduce("max", ops::max);
  reduce("min", ops::min);
  const auto sum_to = [&](const std::string& name, const Shape& x, const Shape& to) {
    out.push_back({"sum_to",
                   "sum_to" + name,
                   {uniform(x)},
                   [to](const Inputs& in) { return ops::sum_to(in[0], to); },
                   {}});
  };
  sum_to("Row", {5, 3}, {3});
  sum_to("Column", {5, 3}, {5, 1});
  sum_to("Both", {2, 5, 3}, {5, 1});
  return out;
}

std::vector<OpCase> shape_cases() {
  std::vector<OpCase> out;
  const auto with = [&](const std::string& op, const std::string& name, Inputs inputs,
                        std::function<Tensor(const Inputs&)> f, std::vector<size_t> batched) {
    out.push_back({op, op + name, std::move(inputs), std::move(f), std::move(batched)});
  };
  with("reshape", "", {uniform({2, 6})},
       [](const Inputs& in) { return ops::reshape(in[0], {kUnknown, 3}); }, {0});
  with("expand_dims", "", {uniform({2, 3})},
       [](const Inputs& in) { return ops::expand_dims(in[0], -2); }, {0});
  with("squeeze", "", {uniform({2, 1, 3})}, [](const Inputs& in) { return ops::squeeze(in[0], 1); },
       {0});
  with("transpose", "Reversed", {uniform({2, 3, 4})},
       [](const Inputs& in) { return ops::transpose(in[0]); }, {0});
  with("transpose", "Permuted", {uniform({2, 3, 4})},
       [](const Inputs& in) { return ops::transpose(in[0], {2, 0, 1}); }, {0});
  with("broadcast_to", "", {uniform({3, 1})},
       [](const Inputs& in) { return ops::broadcast_to(in[0], {2, kUnknown, 4}); }, {0});
  with("concat", "", {uniform({2, 3}), uniform({2, 1}), uniform({2, 2})},
       [](const Inputs& in) { return ops::concat(in); }, {0, 1, 2});
  with("concat", "Rows", {uniform({2, 3}), uniform({1, 3})},
       [](const Inputs& in) { return ops::concat(in, 0); }, {0});
  with("stack", "", {uniform({2, 3}), uniform({2, 3}, 1, 2)},
       [](const Inputs& in) { return ops::stack(in, 1); }, {0, 1});
  with("slice", "", {uniform({2, 5, 2})},
       [](const Inputs& in) { return ops::slice(in[0], 1, 1, 3); }, {0});
  with("slice", "Rest", {uniform({4, 2})},
       [](const Inputs& in) { return ops::slice(in[0], 0, 1, kUnknown); }, {0});
  with("pad", "", {uniform({2, 3})}, [](const Inputs& in) { return ops::pad(in[0], -1, 1, 2); },
       {0});
  with("split", "", {uniform({2, 6})},
       [](const Inputs& in) {
         const std::vector<Tensor> parts = ops::split(in[0], 3);
         return parts[0] * parts[2];  // no gradient reaches the middle part
       },
       {0});
  return out;
}

std::vector<OpCase> product_cases() {
  std::vector<OpCase> out;
  const auto matmul = [&](const std::string& name, const Shape& a, const Shape& b, bool ta,
                          bool tb) {
    out.push_back({"matmul",
                   "matmul" + name,
                   {uniform(a), uniform(b)},
                   [=](const Inputs& in) { return ops::matmul(in[0], in[1], ta, tb); },
                   {}});
    if (!ta) out.back().batched = {0};
  };
  const auto dense = [&](const std::string& name, const Shape& x, bool bias, bool relu) {
    out.push_back(
        {"dense",
         "dense" + name,
         {uniform(x), uniform({3, 4})},
         [=](const Inputs& in) { return ops::dense(in[0], in[1], bias ? in[2] : Tensor(), relu); },
         {0}});
    if (bias) out.back().inputs.push_back(uniform({4}));
  };
  dense("", {2, 3}, true, false);
  dense("WithoutBias", {2, 3}, false, false);
  dense("Relu", {5, 3}, true, true);
  dense("ReluWithoutBias", {5, 3}, false, true);
  dense("ReluOfManyAxes", {2, 2, 3}, true, true);
  matmul("", {2, 3}, {3, 4}, false, false);
  matmul("TransposeA", {3, 2}, {3, 4}, true, false);
  matmul("TransposeB", {2, 3}, {4, 3}, false, true);
  matmul("TransposeBoth", {3, 2}, {4, 3}, true, true);
  matmul("Batched", {2, 3, 4}, {2, 4, 2}, false, false);
  matmul("BatchedTransposeA", {2, 4, 3}, {2, 4, 2}, true, false);
  matmul("BatchedTransposeB", {2, 3, 4}, {2, 2, 4}, false, true);
  matmul("BatchedTransposeBoth", {2, 4, 3}, {2, 2, 4}, true, true);
  matmul("Folded", {2, 2, 3}, {3, 4}, false, false);
  matmul("FoldedTransposeB", {2, 2, 3}, {4, 3}, false, true);
  matmul("BatchedTransposeAWithMatrix", {2, 3, 2}, {3, 4}, true, false);
  matmul("BatchedTransposeBothWithMatrix", {2, 3, 2}, {4, 3}, true, true);
  return out;
}

std::vector<OpCase> einsum_cases() {
  std::vector<OpCase> out;
  const auto einsum = [&](const std::string& name, const std::string& equation, const Shape& a,
                          const Shape& b) {
    out.push_back({"einsum",
                   "einsum" + name,
                   {uniform(a), uniform(b)},
                   [=](const Inputs& in) { return ops::einsum(equation, in[0], in[1]); },
                   {0}});
  };
  einsum("", "ab,bc->ac", {2, 3}, {3, 4});
  einsum("TwoLabelsOut", "abc,cde->adbe", {2, 3, 2}, {2, 2, 3});
  einsum("TwoLabelsIn", "abcd,cde->abe", {2, 3, 2, 2}, {2, 2, 3});
  einsum("Ellipsis", "...b,cb->...c", {2, 3, 2}, {4, 2});
  einsum("EllipsisBesideAsManyLabels", "...b,bcd->...cd", {2, 3, 2}, {2, 2, 3});
  einsum("SummedAlone", "abc,bd->ad", {2, 3, 2}, {3, 2});
  return out;
}

std::vector<OpCase> interaction_cases() {
  std::vector<OpCase> out;
  for (const bool self : {false, true}) {
    out.push_back({"dot_interaction",
                   self ? "dot_interactionSelf" : "dot_interaction",
                   {uniform({2, 4, 3})},
                   [self](const Inputs& in) { return ops::dot_interaction(in[0], self); },
                   {0}});
  }
  out.push_back({"dot_interaction",
                 "dot_interactionOfFeatures",
                 {uniform({2, 3}), uniform({2, 3}, -2, 1), uniform({2, 3}, 0, 2)},
                 [](const Inputs& in) { return ops::dot_interaction({in[0], in[1], in[2]}); },
                 {0, 1, 2}});
  out.push_back({"dot_interaction",
                 "dot_interactionWide",
                 {uniform({1, 18, 17})},
                 [](const Inputs& in) { return ops::dot_interaction(in[0]); },
                 {0}});
  return out;
}

std::vector<OpCase> probability_cases() {
  std::vector<OpCase> out;
  for (const int axis : {-1, 0}) {
    const std::string name = axis == 0 ? "First" : "Last";
    out.push_back({"softmax",
                   "softmax" + name,
                   {uniform({3, 4})},
                   [axis](const Inputs& in) { return ops::softmax(in[0], axis); },
                   {0}});
    out.push_back({"log_softmax",
                   "log_softmax" + name,
                   {uniform({3, 4})},
                   [axis](const Inputs& in) { return ops::log_softmax(in[0], axis); },
                   {0}});
    out.push_back({"sparsemax",
                   "sparsemax" + name,
                   {uniform({3, 4})},
                   [axis](const Inputs& in) { return ops::sparsemax(in[0], axis); },
                   {0}});
  }
  out.push_back({"sigmoid_cross_entropy",
                 "sigmoid_cross_entropy",
                 {uniform({3, 2}, 0, 1), distinct({3, 2})},
                 [](const Inputs& in) { return ops::sigmoid_cross_entropy(in[0], in[1]); },
                 {0, 1}});
  return out;
}

std::vector<OpCase> table_cases() {
  std::vector<OpCase> out;
  const Tensor table = uniform({5, 3});
  out.push_back({"gather",
                 "gather",
                 {table, Tensor::from<int64_t>({4, 0, 4, 2}, {2, 2})},
                 [](const Inputs& in) { return ops::gather(in[0], in[1]); },
                 {1}});
  out.push_back({"gather",
                 "gatherInt32Scalars",
                 {uniform({5}), Tensor::from<int32_t>({1, 1, 3}, {3})},
                 [](const Inputs& in) { return ops::gather(in[0], in[1]); },
                 {1}});
  const Tensor row_ids = ids({4, 0, 4, 2, 1}), splits = ids({0, 2, 2, 5});
  const Tensor weights = Tensor::from<float>({0.5, 2, 1, 0.25, 1}, {5});
  for (const Combiner combiner : {Combiner::kSum, Combiner::kMean, Combiner::kSqrtN}) {
    const std::string name = std::to_string(static_cast<int>(combiner));
    out.push_back(
        {"embedding_pool",
         "embedding_pool" + name,
         {table, row_ids, splits},
         [=](const Inputs& in) { return ops::embedding_pool(in[0], in[1], in[2], {}, combiner); },
         {1, 2}});
    out.push_back({"embedding_pool",
                   "embedding_poolWeighted" + name,
                   {table, row_ids, splits, weights},
                   [=](const Inputs& in) {
                     return ops::embedding_pool(in[0], in[1], in[2], in[3], combiner);
                   },
                   {1, 2, 3}});
  }
  out.push_back({"scatter_sum",
                 "scatter_sum",
                 {row_ids, uniform({5, 2})},
                 [](const Inputs& in) { return ops::scatter_sum(in[0], in[1], {6, 2}); },
                 {0, 1}});
  return out;
}

std::vector<OpCase> all_cases() {
  std::vector<OpCase> out;
  for (auto cases : {elementwise_cases(), reduction_cases(), shape_cases(), product_cases(),
                     einsum_cases(), interaction_cases(), probability_cases(), table_cases()}) {
    out.insert(out.end(), cases.begin(), cases.end());
  }
  return out;
}

// Ops without a gradient; their values are tested in ops_test.cc.
const std::set<std::string> kNotDifferentiable = {
    "sign",      "floor",      "equal",       "not_equal",   "greater",       "greater_equal",
    "less",      "less_equal", "is_nan",      "argmax",      "stop_gradient", "one_hot",
    "ones_like", "zeros_like", "logical_not", "logical_and", "logical_or",    "gather_quantized"};

class OpTest : public testing::TestWithParam<OpCase> {
 protected:
  static bool differentiated(const Tensor& t) { return t.dtype() == DType::kFloat64; }

  static double dot(const Tensor& a, const Tensor& b) {
    const auto x = a.data<double>(), y = b.data<double>();
    double out = 0;
    for (size_t i = 0; i < x.size(); ++i) out += x[i] * y[i];
    return out;
  }

  // Returns the gradients of sum(cotangent * f) for the inputs; zeros if there is none.
  Inputs gradients(const Inputs& inputs, const Tensor& cotangent) const {
    GradientTape tape;
    Inputs sources;
    for (const Tensor& t : inputs) {
      if (!differentiated(t)) continue;
      tape.watch(t);
      sources.push_back(t);
    }
    const Tensor y = GetParam().function(inputs);
    const auto found = tape.input_gradient(
        y, sources,
        {.output_gradient = cotangent, .unconnected_gradients = UnconnectedGradients::kZero});
    Inputs out;
    for (const Gradient& g : found) out.push_back(g.dense());
    return out;
  }

  // Returns d value(inputs) / d inputs[which] by central differences.
  static std::vector<double> differences(const Inputs& inputs, size_t which,
                                         const std::function<double(const Inputs&)>& value) {
    constexpr double kStep = 1e-5;
    std::vector<double> out;
    for (int64_t i = 0; i < inputs[which].size(); ++i) {
      const auto moved = [&](double step) {
        Inputs copy = inputs;
        copy[which] = inputs[which].clone();
        copy[which].mutable_data<double>()[i] += step;
        return value(copy);
      };
      out.push_back((moved(kStep) - moved(-kStep)) / (2 * kStep));
    }
    return out;
  }

  static void expect_slopes(const Tensor& found, const std::vector<double>& expected) {
    expect_near(found.to_vector<double>(), expected, {.absolute = 1e-6, .relative = 1e-6});
  }
};

TEST_P(OpTest, GradientsAgreeWithFiniteDifferences) {
  const OpCase& c = GetParam();
  const Tensor cotangent = uniform(c.function(c.inputs).shape(), 0.5, 1.5);
  const Inputs found = gradients(c.inputs, cotangent);
  size_t position = 0;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    if (!differentiated(c.inputs[i])) continue;
    SCOPED_TRACE(testing::Message() << "input " << i);
    EXPECT_EQ(found[position].shape(), c.inputs[i].shape());
    expect_slopes(found[position++], differences(c.inputs, i, [&](const Inputs& in) {
                    return dot(c.function(in), cotangent);
                  }));
  }
}

// Differentiates the gradients in random directions again for the inputs and the cotangent.
TEST_P(OpTest, SecondDerivativesAgreeWithFiniteDifferences) {
  const OpCase& c = GetParam();
  Inputs arguments = c.inputs;
  arguments.push_back(uniform(c.function(c.inputs).shape(), 0.5, 1.5));
  const auto first = [&](const Inputs& in) {
    return gradients(Inputs(in.begin(), in.end() - 1), in.back());
  };
  Inputs directions;
  for (const Tensor& g : first(arguments)) directions.push_back(uniform(g.shape(), -1, 1.5));
  const auto along = [&](const Inputs& in) {
    const Inputs g = first(in);
    double out = 0;
    for (size_t i = 0; i < g.size(); ++i) out += dot(g[i], directions[i]);
    return out;
  };

  GradientTape outer;
  Inputs sources;
  for (const Tensor& t : arguments) {
    if (!differentiated(t)) continue;
    outer.watch(t);
    sources.push_back(t);
  }
  const Inputs g = first(arguments);
  Tensor total = Tensor::scalar(0.0);
  for (size_t i = 0; i < g.size(); ++i) total = total + ops::sum(g[i] * directions[i]);
  const auto found =
      outer.input_gradient(total, sources, {.unconnected_gradients = UnconnectedGradients::kZero});
  size_t position = 0;
  for (size_t i = 0; i < arguments.size(); ++i) {
    if (!differentiated(arguments[i])) continue;
    SCOPED_TRACE(testing::Message() << "argument " << i);
    expect_slopes(found[position++].dense(), differences(arguments, i, along));
  }
}

TEST_P(OpTest, SymbolicResultsHaveTheSpecsOfEagerOnes) {
  const OpCase& c = GetParam();
  const TensorSpec eager = c.function(c.inputs).spec();
  Inputs known, unknown;
  for (size_t i = 0; i < c.inputs.size(); ++i) {
    TensorSpec spec = c.inputs[i].spec();
    known.push_back(Tensor::symbolic(spec));
    if (std::ranges::count(c.batched, i) > 0) spec.shape = spec.shape.with(0, kUnknown);
    unknown.push_back(Tensor::symbolic(spec));
  }
  EXPECT_EQ(c.function(known).spec(), eager);
  const Tensor y = c.function(unknown);
  EXPECT_TRUE(y.is_symbolic());
  EXPECT_EQ(y.dtype(), eager.dtype);
  EXPECT_TRUE(compatible(y.shape(), eager.shape)) << y.shape() << " and " << eager.shape;
}

TEST_P(OpTest, Float32AgreesWithFloat64) {
  const OpCase& c = GetParam();
  Inputs single;
  for (const Tensor& t : c.inputs) {
    single.push_back(differentiated(t) ? t.cast(DType::kFloat32) : t);
  }
  const Tensor expected = c.function(c.inputs), found = c.function(single);
  ASSERT_EQ(found.dtype(), DType::kFloat32);
  for (int64_t i = 0; i < expected.size(); ++i) {
    const double value = expected.data<double>()[i];
    EXPECT_NEAR(found.data<float>()[i], value, 1e-5 * std::max(1.0, std::abs(value)));
  }
}

INSTANTIATE_TEST_SUITE_P(AllOps, OpTest, testing::ValuesIn(all_cases()),
                         [](const auto& c) { return c.param.name; });

TEST(OpCasesTest, CoverEveryFunctionOfTheHeader) {
  std::ifstream header(std::string(KEEL_SOURCE_DIR) + "/autodiff/ops.h");
  ASSERT_TRUE(header);
  std::set<std::string> declared;
  std::smatch match;
  const std::regex declaration(R"(^(?:Tensor|std::vector<Tensor>) (\w+)\()");
  for (std::string line; std::getline(header, line);) {
    if (std::regex_search(line, match, declaration)) declared.insert(match[1]);
  }
  std::set<std::string> covered = kNotDifferentiable;
  for (const OpCase& c : all_cases()) covered.insert(c.op);
  EXPECT_EQ(declared, covered);
}

}  // namespace keel::ops_gradient_test
