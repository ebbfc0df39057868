// Tests autodiff/ops/dense.cc, einsum.cc, interaction.cc, linalg.cc and table.cc.
#include <cmath>
#include <functional>
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/framework/base/parallel.h>

#include "tests/autodiff/small_tensors.h"
#include "tests/support/errors.h"

namespace keel::ops_products_test {

using namespace testing_support;  // NOLINT: helpers of this folder's tests

using ops::Combiner;

// ---- Products.

TEST(MatMulTest, MultipliesMatrices) {
  const Tensor a = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = floats({1, 2, 3, 4, 5, 6}, {3, 2});
  expect_floats(ops::matmul(a, b), {2, 2}, {22, 28, 49, 64});
  expect_floats(ops::matmul(a, a, false, true), {2, 2}, {14, 32, 32, 77});
  expect_floats(ops::matmul(b, b, true), {2, 2}, {35, 44, 44, 56});
  expect_floats(ops::matmul(b, a, true, true), {2, 2}, {22, 49, 28, 64});
}

TEST(MatMulTest, MultipliesBatches) {
  const Tensor a = floats({1, 2, 3, 4}, {2, 1, 2}), b = floats({5, 6, 7, 8}, {2, 2, 1});
  expect_floats(ops::matmul(a, b), {2, 1, 1}, {17, 53});
  expect_floats(ops::matmul(a, floats({1, 10}, {2, 1})), {2, 1, 1}, {21, 43});
}

TEST(MatMulTest, HandlesEmptyOperands) {
  EXPECT_EQ(ops::matmul(Tensor::zeros({0, 3}), Tensor::zeros({3, 4})).shape(), Shape({0, 4}));
  expect_floats(ops::matmul(Tensor::zeros({1, 0}), Tensor::zeros({0, 2})), {1, 2}, {0, 0});
  EXPECT_EQ(ops::matmul(Tensor::zeros({0, 2, 3}), Tensor::zeros({0, 3, 1})).shape(),
            Shape({0, 2, 1}));
}

TEST(MatMulTest, RejectsIncompatibleShapes) {
  const auto product = [](const Shape& a, const Shape& b) {
    ops::matmul(Tensor::zeros(a), Tensor::zeros(b));
  };
  EXPECT_EQ(message_of<ValueError>([&] { product({2, 3}, {2, 3}); }),
            "matmul: incompatible shapes (2, 3) and (2, 3)");
  EXPECT_THROW(product({3}, {3, 2}), ValueError);
  EXPECT_THROW(product({2, 3}, {2, 3, 4}), ValueError);
  EXPECT_THROW(product({2, 2, 3}, {3, 3, 4}), ValueError);
  EXPECT_THROW(ops::matmul(ids({1}).reshaped({1, 1}), ids({1}).reshaped({1, 1})), TypeError);
}

TEST(MatMulTest, InfersUnknownBatches) {
  const Tensor x = Tensor::symbolic({.shape = {kUnknown, 7, 3}});
  EXPECT_EQ(ops::matmul(x, Tensor::zeros({3, 4})).shape(), Shape({kUnknown, 7, 4}));
  EXPECT_EQ(ops::matmul(x, x, false, true).shape(), Shape({kUnknown, 7, 7}));
}

TEST(DenseOpTest, MultipliesAddsBiasAndAppliesRelu) {
  const Tensor x = floats({1, 2, 3, -4}, {2, 2}), kernel = floats({1, 0, 2, 1, 1, -1}, {2, 3});
  expect_floats(ops::dense(x, kernel), {2, 3}, {3, 2, 0, -1, -4, 10});
  expect_floats(ops::dense(x, kernel, row({1, 2, 3})), {2, 3}, {4, 4, 3, 0, -2, 13});
  expect_floats(ops::dense(x, kernel, row({1, 2, 3}), true), {2, 3}, {4, 4, 3, 0, 0, 13});
  expect_floats(ops::dense(x.reshaped({1, 2, 2}), kernel, {}, true), {1, 2, 3},
                {3, 2, 0, 0, 0, 10});
  EXPECT_EQ(ops::dense(Tensor::zeros({0, 2}), kernel).shape(), Shape({0, 3}));
}

TEST(DenseOpTest, HasTheBitsOfItsThreeOps) {
  const Tensor x = noise({130, 70}), kernel = noise({70, 50}), bias = noise({50});
  const Tensor dy = noise({130, 50});
  const auto run = [&](const std::function<Tensor()>& function) {
    GradientTape tape;
    for (const Tensor& t : {x, kernel, bias}) tape.watch(t);
    const Tensor y = function();
    std::vector<std::vector<float>> out = {y.to_vector<float>()};
    const auto gradients = tape.input_gradient(y, {x, kernel, bias}, {.output_gradient = dy});
    for (const Gradient& g : gradients) out.push_back(g.dense().to_vector<float>());
    return out;
  };
  const auto fused = run([&] { return ops::dense(x, kernel, bias, true); });
  const auto composed = run([&] { return ops::relu(ops::matmul(x, kernel) + bias); });
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(fused[i], composed[i]) << i;
  for (size_t j = 0; j < 50; ++j) EXPECT_NEAR(fused[3][j], composed[3][j], 1e-5) << j;
}

TEST(DenseOpTest, KeepsNaN) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const Tensor y = ops::dense(floats({nan, 1}, {1, 2}), floats({1, 1}, {2, 1}), row({1}), true);
  EXPECT_TRUE(std::isnan(y.item<float>()));
}

TEST(DenseOpTest, BitsOfGradientsDoNotDependOnTheNumberOfWorkers) {
  const Tensor x = noise({2000, 20}), kernel = noise({20, 40}), bias = noise({40});
  const int before = num_workers();
  std::vector<std::vector<float>> results;
  for (const int workers : {1, 2, 4}) {
    set_num_workers(workers);
    GradientTape tape;
    tape.watch(bias);
    const Tensor y = ops::dense(x, kernel, bias, true);
    results.push_back(
        tape.input_gradient(ops::sum(ops::square(y)), {bias})[0].dense().to_vector<float>());
  }
  set_num_workers(before);
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(results[0], results[2]);
}

TEST(DenseOpTest, RejectsIncompatibleShapesAndDtypes) {
  const Tensor x = Tensor::zeros({2, 3}), kernel = Tensor::zeros({3, 4});
  EXPECT_EQ(
      message_of<ValueError>([&] { ops::dense(x, Tensor::zeros({2, 4})); }),
      "dense: the last dimension of the input must be the first of the kernel of shape (2, 4), "
      "received shape (2, 3)");
  EXPECT_EQ(message_of<ValueError>([&] { ops::dense(x, kernel, Tensor::zeros({3})); }),
            "dense: the bias must have the last dimension of the kernel of shape (3, 4), received "
            "shape (3,)");
  EXPECT_THROW(ops::dense(Tensor::zeros({3}), kernel), ValueError);
  EXPECT_THROW(ops::dense(x, Tensor::zeros({3, 4}, DType::kFloat64)), TypeError);
  EXPECT_THROW(ops::dense(Tensor::zeros({2, 3}, DType::kInt32), kernel), TypeError);
}

TEST(EinsumTest, SumsOverTheLabelsThatTheResultLacks) {
  const Tensor a = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  const Tensor b = floats({1, 2, 3, 4, 5, 6}, {3, 2});
  expect_floats(ops::einsum("ab,bc->ac", a, b), {2, 2}, {22, 28, 49, 64});
  expect_floats(ops::einsum("ab,bc->ca", a, b), {2, 2}, {22, 49, 28, 64});
  expect_floats(ops::einsum("ab,ab->a", a, a), {2}, {14, 77});
  expect_floats(ops::einsum("ab,cd->", a, b), {}, {441});
  expect_floats(ops::einsum("ab,c->abc", a, floats({1, 10}, {2})), {2, 3, 2},
                {1, 10, 2, 20, 3, 30, 4, 40, 5, 50, 6, 60});
}

TEST(EinsumTest, EllipsisStandsForTheRemainingAxes) {
  const Tensor a = floats({1, 2, 3, 4}, {2, 1, 2}), b = floats({1, 10}, {2, 1});
  expect_floats(ops::einsum("...x,xy->...y", a, b), {2, 1, 1}, {21, 43});
  expect_floats(ops::einsum("ab...,bc->ac...", floats({1, 2}, {1, 1, 2}), floats({3}, {1, 1})),
                {1, 1, 2}, {3, 6});
  const Tensor x = Tensor::symbolic({.shape = {kUnknown, kUnknown, 2}});
  EXPECT_EQ(ops::einsum("...x,xy->...y", x, b).shape(), Shape({kUnknown, kUnknown, 1}));
}

TEST(EinsumTest, RejectsIncompatibleEquationsAndShapes) {
  const Tensor a = Tensor::zeros({2, 3});
  for (const char* equation : {"ab->ab", "ab,bc", "ab,bc->ad", "aa,bc->ac", "ab,bc->aa",
                               "abc,bc->a", "a1,bc->a", "a,b->c"}) {
    EXPECT_THROW(ops::einsum(equation, a, a), ValueError) << equation;
  }
  EXPECT_EQ(message_of<ValueError>([&] { ops::einsum("ab,bc->ac", a, a); }),
            "einsum: shapes (2, 3) and (2, 3) do not match the equation ab,bc->ac; "
            "axes with one letter must have one length");
}

TEST(DotInteractionTest, OrdersPairsByTheirGreaterMember) {
  const Tensor x = floats({1, 2, 3, 4, 5, 6}, {1, 3, 2});  // (1,2), (3,4), (5,6)
  expect_floats(ops::dot_interaction(x), {1, 3}, {11, 17, 39});
  expect_floats(ops::dot_interaction(x, true), {1, 6}, {5, 11, 25, 17, 39, 61});
}

TEST(DotInteractionTest, AgreesWithAMatrixProduct) {
  const int64_t batch = 3, features = 27, dim = 20;
  const Tensor x = noise({batch, features, dim});
  const Tensor products = ops::matmul(x, x, false, true), pairs = ops::dot_interaction(x);
  ASSERT_EQ(pairs.shape(), Shape({batch, features * (features - 1) / 2}));
  int64_t pair = 0;
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < features; ++i) {
      for (int64_t j = 0; j < i; ++j) {
        EXPECT_NEAR(pairs.data<float>()[pair++],
                    products.data<float>()[(b * features + i) * features + j], 1e-5);
      }
    }
  }
}

TEST(DotInteractionTest, FeaturesNeedNotBeStacked) {
  const int64_t batch = 70, features = 27, dim = 16;
  const Tensor x = noise({batch, features, dim});
  std::vector<Tensor> each;
  for (const Tensor& feature : ops::split(x, features, 1)) {
    each.push_back(ops::reshape(feature, {batch, dim}));
  }
  for (const bool self : {false, true}) {
    const Tensor y = ops::dot_interaction(x, self);
    EXPECT_EQ(ops::dot_interaction(each, self).to_vector<float>(), y.to_vector<float>());
    GradientTape tape({.persistent = true});
    tape.watch(x);
    for (const Tensor& feature : each) tape.watch(feature);
    const Tensor of_all = ops::dot_interaction(x, self), of_each = ops::dot_interaction(each, self);
    const GradientOptions by = {.output_gradient = noise(y.shape())};
    const Tensor dx = tape.input_gradient(of_all, {x}, by)[0].dense();
    const std::vector<Gradient> dx_of_each = tape.input_gradient(of_each, each, by);
    const std::vector<Tensor> parts = ops::split(dx, features, 1);
    for (int64_t f = 0; f < features; ++f) {
      EXPECT_EQ(dx_of_each[f].dense().shape(), Shape({batch, dim}));
      EXPECT_EQ(dx_of_each[f].dense().to_vector<float>(), parts[f].to_vector<float>()) << f;
    }
  }
}

TEST(DotInteractionTest, RejectsFeaturesOfDifferentShapes) {
  const Tensor x = Tensor::zeros({2, 3});
  EXPECT_EQ(
      message_of<ValueError>([&] { ops::dot_interaction({x, Tensor::zeros({2, 4})}); }),
      "dot_interaction: requires [batch, features, dim], or tensors of equal shape [batch, dim], "
      "received (2, 3) and (2, 4)");
  EXPECT_THROW(ops::dot_interaction({x, Tensor::zeros({1, 3})}), ValueError);
  EXPECT_THROW(ops::dot_interaction({x, Tensor::zeros({2, 3}, DType::kFloat64)}), TypeError);
  EXPECT_THROW(ops::dot_interaction(std::vector<Tensor>{}), ValueError);
}

TEST(DotInteractionTest, HandlesEmptyBatchesAndSingleFeatures) {
  EXPECT_EQ(ops::dot_interaction(Tensor::zeros({0, 3, 2})).shape(), Shape({0, 3}));
  EXPECT_EQ(ops::dot_interaction(Tensor::zeros({2, 1, 2})).shape(), Shape({2, 0}));
  EXPECT_THROW(ops::dot_interaction(Tensor::zeros({2, 3})), ValueError);
}

// ---- Tables.

TEST(GatherTest, GatherReadsRows) {
  const Tensor table = floats({1, 2, 3, 4, 5, 6}, {3, 2});
  expect_floats(ops::gather(table, ids({2, 0, 2})), {3, 2}, {5, 6, 1, 2, 5, 6});
  expect_floats(ops::gather(table, Tensor::from<int32_t>({1}, {1, 1})), {1, 1, 2}, {3, 4});
  EXPECT_EQ(ops::gather(table, Tensor::zeros({0}, DType::kInt64)).shape(), Shape({0, 2}));
  EXPECT_EQ(ops::gather(ids({7, 8, 9}), ids({2, 1})).to_vector<int64_t>(),
            (std::vector<int64_t>{9, 8}));
}

TEST(GatherTest, ErrorsNameTheIdOutOfRange) {
  const Tensor table = Tensor::zeros({10, 2});
  EXPECT_EQ(message_of<ValueError>([&] { ops::gather(table, ids({1, 2, 3, 12})); }),
            "gather: id 12 is outside the table of 10 rows at position 3");
  EXPECT_EQ(message_of<ValueError>([&] { ops::gather(table, ids({-1})); }),
            "gather: id -1 is outside the table of 10 rows at position 0");
  EXPECT_THROW(ops::gather(table, row({1})), TypeError);
  EXPECT_THROW(ops::gather(Tensor::scalar(1.0F), ids({0})), ValueError);
}

TEST(EmbeddingPoolTest, PoolsByEveryCombiner) {
  const Tensor table = floats({1, 2, 3, 4, 5, 6}, {3, 2});
  const Tensor row_ids = ids({0, 2, 1}), splits = ids({0, 2, 2, 3});
  const Tensor weights = row({3, 4, 0});
  const auto pool = [&](const Tensor& w, Combiner combiner) {
    return ops::embedding_pool(table, row_ids, splits, w, combiner);
  };
  expect_floats(pool({}, Combiner::kSum), {3, 2}, {6, 8, 0, 0, 3, 4});
  expect_floats(pool({}, Combiner::kMean), {3, 2}, {3, 4, 0, 0, 3, 4});
  const float root = std::sqrt(2.0F);
  expect_floats(pool({}, Combiner::kSqrtN), {3, 2}, {6 / root, 8 / root, 0, 0, 3, 4});
  expect_floats(pool(weights, Combiner::kSum), {3, 2}, {23, 30, 0, 0, 0, 0});
  expect_floats(pool(weights, Combiner::kMean), {3, 2}, {23 / 7.F, 30 / 7.F, 0, 0, 0, 0});
  expect_floats(pool(weights, Combiner::kSqrtN), {3, 2}, {23 / 5.F, 6, 0, 0, 0, 0});
}

TEST(EmbeddingPoolTest, RejectsInvalidRowSplits) {
  const Tensor table = Tensor::zeros({4, 2}), row_ids = ids({0, 1});
  const auto pool = [&](const Tensor& i, const Tensor& splits, const Tensor& w) {
    ops::embedding_pool(table, i, splits, w, Combiner::kSum);
  };
  EXPECT_EQ(message_of<ValueError>([&] { pool(ids({0, 4}), ids({0, 2}), {}); }),
            "embedding_pool: id 4 is outside the table of 4 rows at position 1");
  EXPECT_THROW(pool(row_ids, ids({0, 1}), {}), ValueError);
  EXPECT_THROW(pool(row_ids, ids({1, 2}), {}), ValueError);
  EXPECT_THROW(pool(row_ids, ids({0, 2, 1, 2}), {}), ValueError);
  EXPECT_THROW(pool(row_ids, ids({}), {}), ValueError);
  EXPECT_THROW(pool(row_ids, ids({0, 2}), row({1})), ValueError);
  EXPECT_THROW(pool(row_ids, ids({0, 2}), Tensor::zeros({2}, DType::kFloat64)), TypeError);
  EXPECT_THROW(pool(row_ids, Tensor::from<int32_t>({0, 2}, {2}), {}), TypeError);
  EXPECT_THROW(pool(row_ids.reshaped({2, 1}), ids({0, 2}), {}), ValueError);
}

TEST(EmbeddingPoolTest, HandlesEmptyBatches) {
  const Tensor y =
      ops::embedding_pool(Tensor::zeros({4, 2}), ids({}), ids({0}), {}, Combiner::kMean);
  EXPECT_EQ(y.shape(), Shape({0, 2}));
}

TEST(ScatterSumTest, AddsRowsOfOneId) {
  const Tensor values = floats({1, 2, 3, 4, 5, 6}, {3, 2});
  expect_floats(ops::scatter_sum(ids({2, 0, 2}), values, {4, 2}), {4, 2}, {3, 4, 0, 0, 6, 8, 0, 0});
  expect_floats(ops::scatter_sum(ids({}), Tensor::zeros({0}), {2}), {2}, {0, 0});
}

TEST(ScatterSumTest, RejectsIncompatibleArguments) {
  const Tensor values = Tensor::zeros({2, 2});
  EXPECT_EQ(message_of<ValueError>([&] { ops::scatter_sum(ids({0, 4}), values, {4, 2}); }),
            "scatter_sum: id 4 is outside the table of 4 rows at position 1");
  EXPECT_THROW(ops::scatter_sum(ids({0}), values, {4, 2}), ValueError);
  EXPECT_THROW(ops::scatter_sum(ids({0, 1}), values, {4, 3}), ValueError);
  EXPECT_THROW(ops::scatter_sum(ids({0, 1}), values, {kUnknown, 2}), ValueError);
}

TEST(OneHotTest, MarksIds) {
  expect_floats(ops::one_hot(ids({2, 0}), 3), {2, 3}, {0, 0, 1, 1, 0, 0});
  EXPECT_EQ(ops::one_hot(ids({1}), 2, DType::kInt64).to_vector<int64_t>(),
            (std::vector<int64_t>{0, 1}));
  EXPECT_THROW(ops::one_hot(ids({3}), 3), ValueError);
  EXPECT_THROW(ops::one_hot(ids({0}), -1), ValueError);
}

// ---- Probabilities.

TEST(ProbabilityTest, NormalizesWithoutOverflow) {
  const Tensor x = floats({0, std::log(3.0F), 1000, 1000}, {2, 2});
  expect_floats(ops::softmax(x), {2, 2}, {.25, .75, .5, .5});
  expect_floats(ops::log_softmax(x), {2, 2},
                {std::log(.25F), std::log(.75F), std::log(.5F), std::log(.5F)});
  expect_floats(ops::softmax(floats({1, 5, 1, 5}, {2, 2}), 0), {2, 2}, {.5, .5, .5, .5});
  EXPECT_EQ(ops::softmax(Tensor::zeros({0, 3})).shape(), Shape({0, 3}));
  EXPECT_THROW(ops::softmax(Tensor::scalar(1.0F)), ValueError);
  EXPECT_THROW(ops::softmax(x, 2), ValueError);
}

// The expected values are printed by Keras 3.16 for keras.ops.sparsemax, whose threshold adds up
// the cumulative sums.
TEST(ProbabilityTest, SparsemaxMatchesKeras) {
  expect_floats(ops::sparsemax(floats(
                    {-1.1622319F, -1.3317904F, -0.45297533F, -2.4856668F, -4.834669F, 3,   .1F,
                     -1,          -2,          -3,           .5F,         .4F,        .3F, -2,
                     -3,          .1F,         .2F,          .3F,         .15F,       .25F},
                    {4, 5})),
                {4, 5}, {0.3718593F, 0.20230079F, 1.081116F, 0, 0, 1, 0, 0, 0, 0,
                         0,          0,           0,         0, 0, 0, 0, 0, 0, 0});
  // For x = (.5, .25, -3): k = 2, t = (.5 + .75 - 1) / 2 = .125.
  expect_floats(ops::sparsemax(floats({.5, .25, -3, 7, 2, 5}, {2, 3})), {2, 3},
                {.375, .125, 0, 1, 0, 0});
  expect_floats(ops::sparsemax(floats({.25, 5, 0, 1}, {2, 2}), 0), {2, 2}, {.5, 1, .25, 0});
  EXPECT_EQ(ops::sparsemax(Tensor::zeros({0, 3})).shape(), Shape({0, 3}));
  EXPECT_THROW(ops::sparsemax(Tensor::scalar(1.0F)), ValueError);
}

TEST(ProbabilityTest, ComputesCrossEntropyOfLogitsWithoutOverflow) {
  const Tensor y = row({0, 1, 1, .5}), z = row({0, 0, -1000, 1000});
  const float two = std::log(2.0F);
  expect_floats(ops::sigmoid_cross_entropy(y, z), {4}, {two, two, 1000, 500});
  EXPECT_THROW(ops::sigmoid_cross_entropy(y, row({1})), ValueError);
}

// ---- The bits do not depend on the number of workers.

class WorkersTest : public testing::Test {
 protected:
  ~WorkersTest() override { set_num_workers(before_); }

  static void expect_same_bits(const std::function<Tensor()>& fn) {
    set_num_workers(1);
    const Tensor expected = fn();
    for (const int workers : {2, 4}) {
      set_num_workers(workers);
      const Tensor found = fn();
      EXPECT_TRUE(std::ranges::equal(found.raw(), expected.raw())) << workers << " workers";
    }
  }

 private:
  const int before_ = num_workers();
};

TEST_F(WorkersTest, DoNotChangeSums) {
  const Tensor x = noise({301, 1031});
  expect_same_bits([&] { return ops::sum(x); });
  expect_same_bits([&] { return ops::sum(x, {0}); });
  expect_same_bits([&] { return ops::sum(x, {1}); });
  expect_same_bits([&] { return ops::mean(x.reshaped({7, 43, 1031}), {0, 2}); });
}

TEST_F(WorkersTest, DoNotChangeProducts) {
  const Tensor a = noise({600, 70}), b = noise({70, 90});
  expect_same_bits([&] { return ops::matmul(a, b); });
  expect_same_bits([&] { return ops::matmul(a, a, true); });
  const Tensor x = noise({200, 27, 16});
  expect_same_bits([&] { return ops::dot_interaction(x); });
}

TEST_F(WorkersTest, DoNotChangePoolsOrSoftmax) {
  const int64_t batch = 3000;
  std::vector<int64_t> row_ids, splits = {0};
  for (int64_t s = 0; s < batch; ++s) {
    for (int64_t k = 0; k < s % 7; ++k) row_ids.push_back((s * 31 + k * 17) % 500);
    splits.push_back(static_cast<int64_t>(row_ids.size()));
  }
  const Tensor table = noise({500, 24});
  const Tensor all = Tensor::from(row_ids, {static_cast<int64_t>(row_ids.size())});
  const Tensor ends = Tensor::from(splits, {batch + 1});
  expect_same_bits([&] { return ops::embedding_pool(table, all, ends, {}, Combiner::kMean); });
  expect_same_bits([&] { return ops::scatter_sum(all, ops::gather(table, all), {500, 24}); });
  expect_same_bits([&] { return ops::softmax(noise({3000, 33})); });
}

}  // namespace keel::ops_products_test
