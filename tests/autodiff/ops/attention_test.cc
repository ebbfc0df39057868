// Tests autodiff/ops/attention.cc and framework/kernels/attention/fused_attention.cc.
#include <cmath>
#include <cstdlib>
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/attention_ops.h>
#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>
#include <keel/framework/random.h>

#include "tests/support/expectations.h"

namespace keel::attention_test {

using testing_support::expect_near;
using testing_support::expect_same_bits;

struct Case {
  int64_t matrices, queries, keys, dim, value_dim;
  ops::AttentionOptions options = {};
};

Tensor normal(const Shape& shape, uint64_t seed) {
  Tensor out = Tensor::uninitialized(shape, DType::kFloat32);
  RandomStream{.seed = seed}.normal(out.mutable_data<float>(), 0, 0, 1);
  return out;
}

Tensor coins(const Shape& shape, uint64_t seed) {
  Tensor out = Tensor::uninitialized(shape, DType::kBool);
  const Tensor x = normal(shape, seed);
  for (int64_t i = 0; i < out.size(); ++i) {
    out.mutable_data<bool>()[i] = x.data<float>()[i] > -0.5F;
  }
  return out;
}

bool sees(const Case& c, int64_t m, int64_t i, int64_t j) {
  const ops::AttentionOptions& o = c.options;
  if (o.causal && j > i) return false;
  if (o.window > 0 && std::abs(i - j) >= o.window) return false;
  if (!o.mask) return true;
  const int64_t parts = o.mask.dim(0), rows = o.mask.dim(1), columns = o.mask.dim(2);
  const int64_t part = parts == 1 ? 0 : m / (c.matrices / parts);
  return o.mask
      .data<bool>()[(part * rows + (rows == 1 ? 0 : i)) * columns + (columns == 1 ? 0 : j)];
}

// The same with separate ops and double arithmetic.
Tensor composed(const Case& c, const Tensor& q, const Tensor& k, const Tensor& v) {
  Tensor hidden = Tensor::zeros({c.matrices, c.queries, c.keys}, DType::kFloat64);
  for (int64_t m = 0, at = 0; m < c.matrices; ++m) {
    for (int64_t i = 0; i < c.queries; ++i) {
      for (int64_t j = 0; j < c.keys; ++j, ++at) {
        if (!sees(c, m, i, j)) hidden.mutable_data<double>()[at] = 1e30;
      }
    }
  }
  const auto wide = [](const Tensor& x) { return ops::cast(x, DType::kFloat64); };
  const Tensor products = ops::matmul(wide(q) * c.options.scale, wide(k), false, true);
  return ops::cast(ops::matmul(ops::softmax(products - hidden), wide(v)), DType::kFloat32);
}

std::vector<Case> cases() {
  return {
      {1, 1, 1, 1, 1},
      {2, 3, 5, 4, 2, {.scale = 0.5}},
      {3, 70, 300, 8, 5, {.scale = 0.3}},
      {2, 130, 130, 16, 16, {.scale = 0.25, .causal = true}},
      {2, 300, 300, 4, 4, {.window = 3}},
      {1, 100, 90, 4, 4, {.causal = true, .window = 20}},
      {4, 65, 70, 8, 8, {.mask = coins({2, 65, 70}, 7)}},
      {4, 5, 70, 8, 8, {.mask = coins({4, 1, 70}, 8)}},
      {4, 66, 66, 8, 8, {.mask = coins({1, 66, 66}, 9), .causal = true}},
  };
}

TEST(AttentionTest, EqualsItsFormulaAndItsGradients) {
  for (const Case& c : cases()) {
    SCOPED_TRACE(testing::Message() << c.matrices << " " << c.queries << " " << c.keys);
    const Tensor q = normal({c.matrices, c.queries, c.dim}, 1);
    const Tensor k = normal({c.matrices, c.keys, c.dim}, 2);
    const Tensor v = normal({c.matrices, c.keys, c.value_dim}, 3);
    const Tensor weight = normal({c.matrices, c.queries, c.value_dim}, 4);
    std::vector<std::vector<Tensor>> results;
    for (const bool fused : {true, false}) {
      GradientTape tape;
      for (const Tensor& x : {q, k, v}) tape.watch(x);
      const Tensor y = fused ? ops::attention(q, k, v, c.options) : composed(c, q, k, v);
      std::vector<Tensor> result = {y};
      for (const Gradient& g : tape.input_gradient(ops::sum(y * weight), {q, k, v})) {
        result.push_back(g.dense());
      }
      results.push_back(result);
    }
    for (size_t i = 0; i < 4; ++i) {
      expect_near(results[0][i], results[1][i], {.absolute = 3e-5, .relative = 3e-5});
    }
  }
}

// As in Keras, which subtracts 1e9 from the products.
TEST(AttentionTest, AQueryThatSeesNoKeyGetsEqualWeights) {
  const Tensor q = normal({1, 2, 4}, 1), k = normal({1, 3, 4}, 2);
  const Tensor v = Tensor::from<float>({3, 6, 9}, {1, 3, 1});
  const Tensor mask = Tensor::from<bool>({false, false, false, false, true, false}, {1, 2, 3});
  GradientTape tape;
  tape.watch(v);
  const Tensor y = ops::attention(q, k, v, {.mask = mask});
  expect_near(y.to_vector<float>(), {6.0, 6.0}, {.relative = 1e-6});
  const Tensor first = ops::slice(y, 1, 0, 1);
  expect_near(tape.input_gradient(first, {v})[0].dense().to_vector<float>(),
              {1.0 / 3, 1.0 / 3, 1.0 / 3}, {.relative = 1e-6});
}

// Restores the number of workers.
struct Workers {
  const int before = num_workers();
  ~Workers() { set_num_workers(before); }
};

TEST(AttentionTest, BitsDoNotDependOnTheNumberOfWorkers) {
  const Workers restore;
  const auto compute = [](int workers) {
    set_num_workers(workers);
    const Tensor q = normal({5, 130, 8}, 1), k = normal({5, 300, 8}, 2), v = normal({5, 300, 8}, 3);
    GradientTape tape;
    for (const Tensor& x : {q, k, v}) tape.watch(x);
    const Tensor y = ops::attention(q, k, v, {.causal = true});
    std::vector<Tensor> out = {y};
    for (const Gradient& g : tape.input_gradient(y, {q, k, v})) out.push_back(g.dense());
    return out;
  };
  const std::vector<Tensor> alone = compute(1), together = compute(3);
  for (size_t i = 0; i < alone.size(); ++i) expect_same_bits(alone[i], together[i]);
}

TEST(AttentionTest, GradientsCanBeDifferentiatedAgain) {
  const Tensor q = normal({1, 3, 2}, 1), k = normal({1, 4, 2}, 2), v = normal({1, 4, 2}, 3);
  const auto second = [&](bool fused) {
    GradientTape outer;
    outer.watch(q);
    GradientTape inner;
    inner.watch(q);
    const Case c = {1, 3, 4, 2, 2, {.causal = true}};
    const Tensor y = ops::sum(fused ? ops::attention(q, k, v, c.options) : composed(c, q, k, v));
    const Tensor slope = ops::sum(ops::square(inner.input_gradient(y, {q})[0].dense()));
    return outer.input_gradient(slope, {q})[0].dense();
  };
  expect_near(second(true), second(false), {.absolute = 1e-5, .relative = 1e-4});
}

TEST(AttentionTest, RejectsOperandsThatDoNotMatch) {
  const Tensor q = Tensor::zeros({2, 3, 4}), k = Tensor::zeros({2, 5, 4});
  EXPECT_THROW(ops::attention(q, k, Tensor::zeros({2, 6, 4})), ValueError);
  EXPECT_THROW(ops::attention(q, Tensor::zeros({2, 5, 3}), k), ValueError);
  EXPECT_THROW(ops::attention(Tensor::zeros({3, 4}), k, k), ValueError);
  EXPECT_THROW(ops::attention(q, k, k, {.mask = Tensor::full<bool>({2, 2, 5}, true)}), ValueError);
  const Tensor wide = Tensor::zeros({2, 3, 4}, DType::kFloat64);
  EXPECT_THROW(ops::attention(wide, wide, wide), TypeError);
}

TEST(AttentionTest, RejectsEmptyMasksAndAcceptsWideWindows) {
  const Tensor q = normal({2, 3, 4}, 1), k = normal({2, 5, 4}, 2);
  EXPECT_THROW(ops::attention(q, k, k, {.mask = Tensor::full<bool>({0, 3, 5}, true)}), ValueError);
  expect_same_bits(ops::attention(q, k, k, {.window = std::numeric_limits<int64_t>::max()}),
                   ops::attention(q, k, k, {.window = 8}));
}

}  // namespace keel::attention_test
