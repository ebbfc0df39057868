#include <keel/layers/embedding/embed_reduce.h>

#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/expectations.h"
#include "tests/support/layer_contract.h"

namespace keel::embed_reduce_test {

using layers::EmbedReduce;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::float_spec;
using testing_support::int_spec;
using testing_support::Tolerance;
using Values = std::vector<float>;
using Rows = std::vector<std::vector<int64_t>>;

constexpr Tolerance kTolerance = {.absolute = 1e-5};

const char* const kCombiners[] = {"sum", "mean", "sqrtn"};

// Row i of the table is [i, 10 i].
EmbedReduce counting(const std::string& combiner, DType dtype = DType::kFloat32) {
  const EmbedReduce layer(
      {.input_dim = 8, .output_dim = 2, .combiner = combiner, .name = "items", .dtype = dtype});
  layer->build(TensorSpec{.shape = {kUnknown}, .dtype = DType::kInt64});
  Values values;
  for (int i = 0; i < 8; ++i) {
    values.push_back(static_cast<float>(i));
    values.push_back(static_cast<float>(10 * i));
  }
  layer->embeddings().assign(Tensor::from(values, {8, 2}).cast(dtype));
  return layer;
}

TEST(EmbedReduceTest, RejectsWeightsThatAreNaNOrInfinite) {
  const float inf = std::numeric_limits<float>::infinity();
  const RaggedTensor rows = RaggedTensor::from_rows<int64_t>({{1, 2}, {3}});
  const Tensor dense = Tensor::from<int64_t>({1, 2, 3, 4}, {2, 2});
  for (const float bad : {inf, -inf, std::nanf("")}) {
    for (const char* combiner : kCombiners) {
      const EmbedReduce layer = counting(combiner);
      const RaggedTensor of_rows = {Tensor::from<float>({1, 0.5, bad}, {3}), rows.row_splits};
      EXPECT_THROW(layer(rows, {.weights = of_rows}), ValueError) << combiner << bad;
      EXPECT_THROW(layer(dense, {.weights = Tensor::from<float>({1, bad, 1, 1}, {2, 2})}),
                   ValueError)
          << combiner << bad;
      EXPECT_THROW(layer(rows, {.weights = Tensor::from<float>({1, bad}, {2})}), ValueError)
          << combiner << bad;
    }
  }
}

TEST(EmbedReduceTest, AcceptsRegularizersAndAConstraint) {
  const EmbedReduce layer({.input_dim = 3,
                           .output_dim = 2,
                           .embeddings_initializer = "ones",
                           .embeddings_regularizer = "l2",
                           .activity_regularizer = "l1",
                           .embeddings_constraint = "non_neg"});
  layer(Tensor::from<int64_t>({1, 2}, {1, 2}));
  ASSERT_EQ(layer->losses().size(), 2u);
  EXPECT_NEAR(layer->losses()[0].item<float>(), 0.02, 1e-7);
  EXPECT_NEAR(layer->losses()[1].item<float>(), 0.06, 1e-7);
  EXPECT_TRUE(layer->embeddings().constraint());
}

template <class T>
SparseTensor sparse(const std::vector<std::vector<T>>& rows, int64_t width) {
  std::vector<int64_t> indices;
  std::vector<T> values;
  for (size_t r = 0; r < rows.size(); ++r) {
    for (size_t c = 0; c < rows[r].size(); ++c) {
      indices.insert(indices.end(), {static_cast<int64_t>(r), static_cast<int64_t>(c)});
      values.push_back(rows[r][c]);
    }
  }
  return {.indices = Tensor::from(indices, {std::ssize(values), 2}),
          .values = Tensor::from(values, {std::ssize(values)}),
          .dense_shape = {std::ssize(rows), width}};
}

const Rows kRows = {{1}, {2, 3, 4, 5}};
const std::vector<Values> kWeights = {{1}, {1, 2, 3, 4}};

Values look_up(const EmbedReduce& layer, const TensorLike& ids,
               const std::optional<TensorLike>& weights = {}) {
  return layer(Tensors(ids), {.weights = weights}).tensor().to_vector<float>();
}

// Expects the outputs for ragged and sparse rows, without and with weights.
void expect_rows(const std::string& combiner, const Values& plain, const Values& weighted) {
  const EmbedReduce layer = counting(combiner);
  expect_near(look_up(layer, RaggedTensor::from_rows(kRows)), plain, kTolerance);
  expect_near(look_up(layer, sparse(kRows, 4)), plain, kTolerance);
  expect_near(look_up(layer, RaggedTensor::from_rows(kRows), RaggedTensor::from_rows(kWeights)),
              weighted, kTolerance);
  expect_near(look_up(layer, sparse(kRows, 4), sparse(kWeights, 4)), weighted, kTolerance);
}

TEST(SpecRowsI, I01_EmbedReduceSumsRaggedAndSparseRows) {
  expect_rows("sum", {1, 10, 14, 140}, {1, 10, 40, 400});
}

TEST(SpecRowsI, I02_EmbedReduceAveragesRaggedAndSparseRows) {
  expect_rows("mean", {1, 10, 3.5, 35}, {1, 10, 4, 40});
}

TEST(SpecRowsI, I03_EmbedReduceScalesRowsByTheRootOfTheirSquaredWeights) {
  expect_rows("sqrtn", {1, 10, 7, 70}, {1, 10, 7.3029674F, 73.0296743F});
}

TEST(SpecRowsI, I04_WeightsOfOneIdCountForSumOnly) {
  const Tensor ids = Tensor::from<int64_t>({2, 3}, {2});
  const Tensor weights = Tensor::from<float>({1, 2}, {2});
  EXPECT_EQ(look_up(counting("sum"), ids, weights), (Values{2, 20, 6, 60}));
  EXPECT_EQ(look_up(counting("mean"), ids, weights), (Values{2, 20, 3, 30}));
  EXPECT_EQ(look_up(counting("sqrtn"), ids, weights), (Values{2, 20, 3, 30}));
}

TEST(SpecRowsI, I05_WeightsOfOneIdInAMatrixDivideOut) {
  const Tensor ids = Tensor::from<int64_t>({2, 3}, {2, 1});
  const Tensor weights = Tensor::from<float>({1, 2}, {2, 1});
  EXPECT_EQ(look_up(counting("sum"), ids, weights), (Values{2, 20, 6, 60}));
  EXPECT_EQ(look_up(counting("mean"), ids, weights), (Values{2, 20, 3, 30}));
  EXPECT_EQ(look_up(counting("sqrtn"), ids, weights), (Values{2, 20, 3, 30}));
}

TEST(EmbedReduceTest, RankOneInputsAreNotReduced) {
  for (const char* combiner : kCombiners) {
    EXPECT_EQ(look_up(counting(combiner), Tensor::from<int64_t>({2, 3}, {2})),
              (Values{2, 20, 3, 30}));
  }
}

TEST(EmbedReduceTest, DenseRowsAreReducedAsRaggedOnes) {
  const std::vector<std::vector<float>> weights = {{1, 2, 0.5F}, {3, 1, 0}};
  const Rows rows = {{1, 2, 2}, {7, 0, 3}};
  const Tensor ids = Tensor::from<int64_t>({1, 2, 2, 7, 0, 3}, {2, 3});
  for (const char* combiner : kCombiners) {
    const EmbedReduce layer = counting(combiner);
    expect_near(look_up(layer, ids), look_up(layer, RaggedTensor::from_rows(rows)), kTolerance);
    expect_near(look_up(layer, ids, Tensor::from<float>({1, 2, 0.5F, 3, 1, 0}, {2, 3})),
                look_up(layer, RaggedTensor::from_rows(rows), RaggedTensor::from_rows(weights)),
                kTolerance);
  }
}

TEST(EmbedReduceTest, EmptyRowsAndZeroDivisorsGiveZeros) {
  const RaggedTensor ids = RaggedTensor::from_rows(Rows{{}, {3, 4}});
  const RaggedTensor weights = RaggedTensor::from_rows(std::vector<Values>{{}, {1, -1}});
  EXPECT_EQ(look_up(counting("mean"), ids, weights), (Values{0, 0, 0, 0}));
  EXPECT_EQ(look_up(counting("sum"), ids, weights), (Values{0, 0, -1, -10}));
  const Tensor dense = Tensor::from<int64_t>({3, 4}, {1, 2});
  const Tensor zeros = Tensor::zeros({1, 2});
  for (const char* combiner : kCombiners) {
    EXPECT_EQ(look_up(counting(combiner), dense, zeros), (Values{0, 0})) << combiner;
  }
}

TEST(EmbedReduceTest, ARowWeightAppliesToEachOfItsIds) {
  const Tensor weights = Tensor::from<float>({2, 3}, {2});
  const Tensor dense = Tensor::from<int64_t>({1, 3, 2, 4}, {2, 2});
  const RaggedTensor ragged = RaggedTensor::from_rows(Rows{{1, 3}, {2, 4}});
  for (const TensorLike& ids : {TensorLike(dense), TensorLike(ragged)}) {
    expect_near(look_up(counting("sum"), ids, weights), {8, 80, 18, 180}, kTolerance);
    expect_near(look_up(counting("mean"), ids, weights), {2, 20, 3, 30}, kTolerance);
  }
}

TEST(EmbedReduceTest, WeightsMayDifferByElement) {
  const Tensor ids = Tensor::from<int64_t>({1, 3}, {1, 2});
  const Tensor weights = Tensor::from<float>({1, 0, 2, 5}, {1, 2, 2});
  expect_near(look_up(counting("sum"), ids, weights), {7, 150}, kTolerance);
  expect_near(look_up(counting("mean"), ids, weights), {7.0F / 3, 30}, kTolerance);
}

TEST(EmbedReduceTest, IdsMayBeInt32OrFloats) {
  const EmbedReduce layer = counting("sum");
  EXPECT_EQ(look_up(layer, Tensor::from<int32_t>({2, 3}, {1, 2})), (Values{5, 50}));
  EXPECT_EQ(look_up(layer, Tensor::from<float>({2, 3}, {1, 2})), (Values{5, 50}));
  EXPECT_EQ(look_up(layer, Tensor::from<float>({2, 3}, {2})), (Values{2, 20, 3, 30}));
}

TEST(EmbedReduceTest, TablesMayBeFloat64) {
  const EmbedReduce layer = counting("mean", DType::kFloat64);
  const Tensor weights = Tensor::from<float>({1, 3}, {1, 2});
  const Tensor ids = Tensor::from<int64_t>({1, 5}, {1, 2});
  EXPECT_EQ(layer(Tensors(ids), {.weights = weights}).tensor().to_vector<double>(),
            (std::vector<double>{4, 40}));
}

TEST(EmbedReduceTest, GradientsOfTheTableAreSlices) {
  const EmbedReduce layer = counting("mean");
  GradientTape tape;
  const Tensor y = layer(Tensors(RaggedTensor::from_rows(Rows{{1, 1, 4, 5}}))).tensor();
  const Gradient gradient = tape.gradient(ops::sum(y), {layer->embeddings()})[0];
  const Values dense = gradient.dense().to_vector<float>();
  EXPECT_EQ(dense[2], 0.5F);
  EXPECT_EQ(dense[8], 0.25F);
  EXPECT_EQ(dense[0], 0);
}

TEST(EmbedReduceTest, GradientsReachDenseWeights) {
  // d/dw of (w0 e0 + w1 e1) / (w0 + w1) at w = (1, 3): (e0 - y) / 4 and (e1 - y) / 4.
  const EmbedReduce layer = counting("mean");
  const Tensor ids = Tensor::from<int64_t>({2, 6}, {1, 2});
  const Variable weights(Tensor::from<float>({1, 3}, {1, 2}), {.name = "weights"});
  GradientTape tape;
  const Tensor y = layer(Tensors(ids), {.weights = weights.read()}).tensor();
  const Values g = tape.gradient(ops::sum(y), {weights})[0].dense().to_vector<float>();
  expect_near(g, {(22.0F - 55.0F) / 4, (66.0F - 55.0F) / 4}, kTolerance);
}

TEST(EmbedReduceTest, WeightsOfAZeroDivisorHaveZeroGradient) {
  const Tensor ids = Tensor::from<int64_t>({2, 6, 2, 6}, {2, 2});
  for (const char* combiner : {"mean", "sqrtn"}) {
    const EmbedReduce layer = counting(combiner);
    const Variable weights(Tensor::from<float>({0, 0, 3, 4}, {2, 2}), {.name = "weights"});
    GradientTape tape;
    const Tensor y = layer(Tensors(ids), {.weights = weights.read()}).tensor();
    const Values g = tape.gradient(ops::sum(y), {weights})[0].dense().to_vector<float>();
    EXPECT_EQ(g[0], 0) << combiner;
    EXPECT_EQ(g[1], 0) << combiner;
    // The gradient of (3 e0 + 4 e1) / r for e = (22, 66) is e / r - y w / r^2 with r = 5, or (e -
    // y) / 7.
    const bool mean = std::string(combiner) == "mean";
    const float sum = 3 * 22 + 4 * 66;
    EXPECT_NEAR(g[2], mean ? (22 - sum / 7) / 7 : 22.0F / 5 - sum / 5 * 3 / 25, 1e-4) << combiner;
    EXPECT_NEAR(g[3], mean ? (66 - sum / 7) / 7 : 66.0F / 5 - sum / 5 * 4 / 25, 1e-4) << combiner;
  }
}

TEST(EmbedReduceTest, WorksInFunctionalModelsWithWeights) {
  const EmbedReduce layer = counting("sum");
  const Tensor ids = layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "ids"});
  const Tensor weights = layers::input({.shape = {2}, .name = "weights"});
  const Functional model({.inputs = Tensors::list({ids, weights}),
                          .outputs = layer(Tensors(ids), {.weights = weights})});
  const Tensor y = model(Tensors::list({Tensor::from<int64_t>({2, 3}, {1, 2}),
                                        Tensor::from<float>({1, 2}, {1, 2})}))
                       .tensor();
  EXPECT_EQ(y.to_vector<float>(), (Values{8, 80}));
}

TEST(EmbedReduceTest, ReadsConfigsOfKeras) {
  const auto layer = layers::deserialize(parse_json(R"({"class_name": "keras_rs>EmbedReduce",
      "config": {"name": "e", "trainable": true, "dtype": "float32", "input_dim": 4,
      "output_dim": 2, "embeddings_initializer": {"class_name": "RandomUniform", "config":
      {"minval": -0.05, "maxval": 0.05, "seed": null}}, "embeddings_regularizer": null,
      "activity_regularizer": null, "embeddings_constraint": null, "mask_zero": false,
      "combiner": "sqrtn"}})"));
  EXPECT_EQ(dynamic_cast<const EmbedReduceLayer&>(*layer).options().combiner, "sqrtn");
}

TEST(EmbedReduceTest, RejectsWrongParameters) {
  EXPECT_THROW(EmbedReduce({.input_dim = 0, .output_dim = 2}), ValueError);
  EXPECT_THROW(EmbedReduce({.input_dim = 2, .output_dim = 0}), ValueError);
  EXPECT_THROW(EmbedReduce({.input_dim = 2, .output_dim = 2, .combiner = "max"}), ValueError);
  EXPECT_THROW(EmbedReduce({.input_dim = 2, .output_dim = 2, .mask_zero = true}),
               NotImplementedError);
}

TEST(EmbedReduceTest, RejectsWrongIds) {
  const EmbedReduce layer = counting("mean");
  EXPECT_THROW(look_up(layer, Tensor::zeros({1, 1, 1}, DType::kInt64)), ValueError);
  EXPECT_THROW(look_up(layer, Tensor::scalar<int64_t>(1)), ValueError);
  EXPECT_THROW(look_up(layer, Tensor::zeros({1}, DType::kString)), ValueError);
  for (const int64_t id : {-1, 8}) {
    EXPECT_THROW(look_up(layer, Tensor::from<int64_t>({id}, {1})), ValueError);
    EXPECT_THROW(look_up(layer, Tensor::from<int64_t>({id}, {1, 1})), ValueError);
    EXPECT_THROW(look_up(layer, RaggedTensor::from_rows(Rows{{id}})), ValueError);
  }
}

TEST(EmbedReduceTest, RejectsIncompatibleWeights) {
  const EmbedReduce layer = counting("mean");
  const Tensor dense = Tensor::from<int64_t>({1, 2}, {1, 2});
  const RaggedTensor ragged = RaggedTensor::from_rows(Rows{{1, 2}, {3}});
  EXPECT_THROW(look_up(layer, dense, Tensor::zeros({2})), ValueError);
  EXPECT_THROW(look_up(layer, dense, Tensor::zeros({1, 3})), ValueError);
  EXPECT_THROW(look_up(layer, dense, Tensor::zeros({1, 2, 2, 1})), ValueError);
  EXPECT_THROW(look_up(layer, Tensor::from<int64_t>({1, 2}, {2}), Tensor::zeros({3})), ValueError);
  EXPECT_THROW(look_up(layer, ragged, RaggedTensor::from_rows(std::vector<Values>{{1}, {1, 2}})),
               ValueError);
  EXPECT_THROW(look_up(layer, ragged, Tensor::zeros({3})), ValueError);
  EXPECT_THROW(look_up(layer, ragged, Tensor::zeros({2, 2})), TypeError);
  EXPECT_THROW(look_up(layer, dense, ragged), TypeError);
  EXPECT_THROW(layer(Tensors::list({dense})), ValueError);
}

TEST(EmbedReduceTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "EmbedReduce",
                         .config = R"({"input_dim": 9, "output_dim": 4})",
                         .inputs = int_spec({2, 3}),
                         .output = float_spec({2, 4}),
                         .trainable_weights = 1,
                         .weights = 1});
}

}  // namespace keel::embed_reduce_test
