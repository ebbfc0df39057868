// Tests layers/embedding/distributed/internal/sparse_core.cc.
#include <keel/layers/embedding/distributed/distributed_embedding.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/replica_context.h>
#include <keel/autodiff/tape.h>
#include <keel/distribute/tpu/tpu_strategy.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/layers/embedding/distributed/distributed_testing.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"
#include "tests/support/tensors.h"

namespace keel::distributed_embedding_test {

using distribute::TPUStrategy;
using distributed_testing::counting;
using distributed_testing::feature;
using distributed_testing::small_table;
using keras_rs::make_table;
using layers::DistributedEmbedding;
using testing::HasSubstr;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::int_spec;
using testing_support::message_if_any;
using testing_support::message_of;
using testing_support::sparse;
using testing_support::values_of;
using Features = Nest<keras_rs::FeatureConfig>;
using Values = std::vector<float>;
using Rows = std::vector<std::vector<int64_t>>;
using Weights = Nest<std::optional<TensorLike>>;

// Looks up ids in counting() with the current placement, in the only replica of `strategy`.
Values look_up(distribute::Strategy& strategy, const std::string& combiner, const Shape& input,
               const TensorLike& ids, const std::optional<TensorLike>& weights = {}) {
  const auto scope = strategy.scope();
  const DistributedEmbedding layer(
      {.feature_configs = feature(small_table("items", combiner), input)});
  layer->build(map_structure(Tensors(ids), [](const TensorLike& t) { return t.spec(); }));
  layer->set_embedding_tables({{"items", counting()}});
  DistributedEmbeddingCallOptions options;
  if (weights) options.weights = Weights(weights);
  return values_of(strategy.run([&] { return layer(Tensors(ids), options); })[0]);
}

// On the default device and on sparse cores.
void expect_everywhere(const std::string& combiner, const Shape& input, const TensorLike& ids,
                       const std::optional<TensorLike>& weights, const Values& expected) {
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  for (distribute::Strategy* strategy :
       {static_cast<distribute::Strategy*>(&cpu), static_cast<distribute::Strategy*>(&tpu)}) {
    const Values received = look_up(*strategy, combiner, input, ids, weights);
    ASSERT_EQ(received.size(), expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(received[i], expected[i], 1e-5) << strategy->name() << " " << i;
    }
  }
}

const Rows kRows = {{1}, {2, 3, 4, 5}};
const std::vector<Values> kRowWeights = {{1}, {1, 2, 3, 4}};

void expect_rows(const std::string& combiner, const Values& plain, const Values& weighted) {
  const RaggedTensor ragged = RaggedTensor::from_rows(kRows);
  expect_everywhere(combiner, {2, 4}, ragged, {}, plain);
  expect_everywhere(combiner, {2, 4}, ragged, RaggedTensor::from_rows(kRowWeights), weighted);
  expect_everywhere(combiner, {2, 4}, sparse(kRows, 4), {}, plain);
  expect_everywhere(combiner, {2, 4}, sparse(kRows, 4), sparse(kRowWeights, 4), weighted);
}

TEST(SpecRowsI, I01_EveryPlacementSumsRaggedAndSparseRows) {
  expect_rows("sum", {1, 10, 14, 140}, {1, 10, 40, 400});
}

TEST(SpecRowsI, I02_EveryPlacementAveragesRaggedAndSparseRows) {
  expect_rows("mean", {1, 10, 3.5, 35}, {1, 10, 4, 40});
}

TEST(SpecRowsI, I03_EveryPlacementScalesRowsByTheRootOfTheirSquaredWeights) {
  expect_rows("sqrtn", {1, 10, 7, 70}, {1, 10, 7.3029674F, 73.0296743F});
}

TEST(DistributedEmbeddingTest, WatchedWeightsOfRaggedRowsHaveGradientsOnEveryPlacement) {
  const RaggedTensor ids = RaggedTensor::from_rows(kRows);
  const RaggedTensor weights = RaggedTensor::from_rows(kRowWeights);
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  for (distribute::Strategy* strategy :
       {static_cast<distribute::Strategy*>(&cpu), static_cast<distribute::Strategy*>(&tpu)}) {
    const auto scope = strategy->scope();
    const DistributedEmbedding layer(
        {.feature_configs = feature(small_table("items", "mean"), {2, 4})});
    layer->build(Specs(TensorLike(ids).spec()));
    layer->set_embedding_tables({{"items", counting()}});
    strategy->run([&] {
      GradientTape tape;
      tape.watch(weights.values);
      DistributedEmbeddingCallOptions options;
      options.weights = Weights(std::optional<TensorLike>(weights));
      const Tensor found = layer(Tensors(TensorLike(ids)), options).tensor();
      const Gradient g = tape.input_gradient(ops::sum(found), {weights.values})[0];
      // Row i is (i, 10 i) and the mean of the second sample (4, 40): 11 (i - 4) / 10.
      const Values expected = {0, -2.2F, -1.1F, 0, 1.1F};
      const Values received = g.dense().to_vector<float>();
      ASSERT_EQ(received.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(received[i], expected[i], 1e-5);
    });
  }
}

TEST(SpecRowsI, I04_WeightsOfOneIdCountForSumOnlyOnEveryPlacement) {
  const Tensor ids = Tensor::from<int64_t>({2, 3}, {2});
  const Tensor weights = Tensor::from<float>({1, 2}, {2});
  expect_everywhere("sum", {2}, ids, weights, {2, 20, 6, 60});
  expect_everywhere("mean", {2}, ids, weights, {2, 20, 3, 30});
  expect_everywhere("sqrtn", {2}, ids, weights, {2, 20, 3, 30});
}

TEST(SpecRowsI, I05_WeightsOfOneIdInAMatrixDivideOutOnEveryPlacement) {
  const Tensor ids = Tensor::from<int64_t>({2, 3}, {2, 1});
  const Tensor weights = Tensor::from<float>({1, 2}, {2, 1});
  expect_everywhere("sum", {2, 1}, ids, weights, {2, 20, 6, 60});
  expect_everywhere("mean", {2, 1}, ids, weights, {2, 20, 3, 30});
  expect_everywhere("sqrtn", {2, 1}, ids, weights, {2, 20, 3, 30});
}

TEST(SpecRowsI, I06_PlacementsRequireTheirDevice) {
  const auto make = [](const std::string& placement) {
    return DistributedEmbedding(
        {.feature_configs = feature(small_table("items", "sum", placement), {2})});
  };
  EXPECT_FALSE(DistributedEmbeddingLayer::has_sparsecores());
  EXPECT_THAT(message_of([&] { make("sparsecore"); }), HasSubstr("sparsecore"));
  EXPECT_EQ(make("auto")->sublayers().size(), 1U);
  EXPECT_THROW(make("somewhere"), ValueError);
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  EXPECT_TRUE(DistributedEmbeddingLayer::has_sparsecores());
  EXPECT_TRUE(make("sparsecore")->sublayers().empty());
  EXPECT_TRUE(make("auto")->sublayers().empty());
  EXPECT_EQ(make("default_device")->sublayers().size(), 1U);
}

TEST(SpecRowsI, I07_FeaturesOfOneTableShareASublayer) {
  const auto table = small_table("items");
  const DistributedEmbedding layer({.feature_configs = Features({{"a", feature(table, {2})},
                                                                 {"b", feature(table, {2, 3})},
                                                                 {"c", feature(table, {2})}})});
  const Tensor ids = Tensor::from<int64_t>({1, 2}, {2});
  const Tensors out = layer(Tensors({{"a", TensorLike(ids)},
                                     {"b", TensorLike(Tensor::zeros({2, 3}, DType::kInt64))},
                                     {"c", TensorLike(ids)}}));
  EXPECT_EQ(layer->sublayers().size(), 1U);
  EXPECT_EQ(layer->trainable_variables().size(), 1U);
  EXPECT_EQ(values_of(out["a"]), values_of(out["c"]));
}

TEST(DistributedEmbeddingTest, DefaultsMatchKeras) {
  const keras_rs::TableConfig table;
  EXPECT_EQ(table.combiner, "mean");
  EXPECT_EQ(table.placement, "auto");
  EXPECT_EQ(table.optimizer->class_name, "Adam");
  EXPECT_EQ(table.max_ids_per_partition, 256);
  EXPECT_EQ(table.max_unique_ids_per_partition, 256);
  EXPECT_EQ(table.initializer->function().class_name(), "VarianceScaling");
  EXPECT_TRUE(DistributedEmbeddingOptions{}.table_stacking.is_auto());
}

TEST(DistributedEmbeddingTest, RowsLongerThanTheInputShapeAreTruncated) {
  for (const TensorLike& ids : {TensorLike(RaggedTensor::from_rows(Rows{{1, 2, 3}, {4}})),
                                TensorLike(sparse(Rows{{1, 2, 3}, {4}}, 3))}) {
    expect_everywhere("sum", {2, 2}, ids, {}, {3, 30, 4, 40});
    expect_everywhere("sum", {2, kUnknown}, ids, {}, {6, 60, 4, 40});
  }
}

TEST(DistributedEmbeddingTest, DenseRowsAreReduced) {
  expect_everywhere("mean", {2, 2}, Tensor::from<int32_t>({1, 3, 4, 4}, {2, 2}), {},
                    {2, 20, 4, 40});
}

TEST(DistributedEmbeddingTest, TablesOfBothPlacementsWorkSideBySide) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const auto far = small_table("far", "sum", "sparsecore");
  const auto near = small_table("near", "sum", "default_device");
  const DistributedEmbedding layer(
      {.feature_configs = Features::list({feature(near, {4}), feature(far, {4, 2})})});
  const Tensors x = Tensors::list(
      {Tensor::from<int64_t>({1, 2}, {2}), Tensor::from<int64_t>({1, 2, 3, 4}, {2, 2})});
  layer->build(specs_of(x));
  layer->set_embedding_tables({{"far", counting()}, {"near", counting()}});
  EXPECT_EQ(layer->trainable_variables().size(), 2U);
  EXPECT_EQ(layer->sublayers().size(), 1U);
  const auto out = tpu.run([&] { return layer(x); });
  for (int r = 0; r < 2; ++r) {
    EXPECT_EQ(values_of(out[r][0]), (Values{1, 10, 2, 20}));
    EXPECT_EQ(values_of(out[r][1]), (Values{3, 30, 7, 70}));
  }
}

TEST(DistributedEmbeddingTest, PreprocessedInputsGiveTheSameResults) {
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 1});
  for (distribute::Strategy* strategy :
       {static_cast<distribute::Strategy*>(&cpu), static_cast<distribute::Strategy*>(&tpu)}) {
    const auto scope = strategy->scope();
    const auto table = small_table("items");
    const DistributedEmbedding layer(
        {.feature_configs = Features(
             {{"group", Features::list({feature(table, {2, 4})})}, {"one", feature(table, {2})}})});
    const Tensor one = Tensor::from<int64_t>({1, 2}, {2});
    const Tensors x({{"group", Tensors::list({RaggedTensor::from_rows(kRows)})}, {"one", one}});
    const Weights weights(
        {{"group",
          Weights::list({std::optional<TensorLike>(RaggedTensor::from_rows(kRowWeights))})},
         {"one", std::optional<TensorLike>()}});
    const Tensors ready =
        strategy->run([&] { return layer->preprocess(x, {.weights = weights}); })[0];
    EXPECT_TRUE(layer->built());
    const char* placement = strategy->is_tpu() ? "sparsecore" : "default_device";
    const Tensors& parts = ready["preprocessed_inputs_per_placement"][placement];
    EXPECT_TRUE(parts["inputs"].entries().contains("group/0"));
    EXPECT_EQ(parts["weights"].entries().size(), 1U);
    const auto run = [&](const Tensors& inputs, const DistributedEmbeddingCallOptions& options) {
      return strategy->run([&] { return layer(inputs, options); })[0];
    };
    const Tensors direct = run(x, {.weights = weights});
    const Tensors later = run(ready, {});
    EXPECT_EQ(values_of(later["group"][0]), values_of(direct["group"][0]));
    EXPECT_EQ(values_of(later["one"]), values_of(direct["one"]));
    EXPECT_NE(values_of(run(x, {})["group"][0]), values_of(direct["group"][0]));
  }
}

TEST(DistributedEmbeddingTest, PreprocessedInputsBelongToTheirPlacement) {
  const auto table = small_table("items");
  const DistributedEmbedding layer({.feature_configs = Features({{"a", feature(table, {2})}})});
  const Tensors x({{"a", TensorLike(Tensor::from<int64_t>({1, 2}, {2}))}});
  const Tensors ready = layer->preprocess(x);
  const Weights weights({{"a", std::optional<TensorLike>(Tensor::zeros({2}))}});
  EXPECT_THROW(layer(ready, {.weights = weights}), ValueError);
  const Tensors elsewhere = Tensors::dict(
      {{"preprocessed_inputs_per_placement",
        Tensors::dict(
            {{"sparsecore", ready["preprocessed_inputs_per_placement"]["default_device"]}})}});
  EXPECT_THAT(message_of([&] { layer(elsewhere); }), HasSubstr("'a'"));
}

TEST(DistributedEmbeddingTest, SymbolicInputsBuildFunctionalModels) {
  for (const bool ahead : {false, true}) {
    const auto table = small_table("items");
    const DistributedEmbedding layer(
        {.feature_configs = Features({{"a", feature(table, {2, 4})}, {"b", feature(table, {2})}})});
    const Tensors in(
        {{"a", TensorLike(layers::ragged_input({.dtype = DType::kInt64, .name = "a"}))},
         {"b", TensorLike(layers::input({.dtype = DType::kInt64, .name = "b"}))}});
    const Tensors out = layer(ahead ? layer->preprocess(in) : in);
    EXPECT_EQ(out["a"].tensor().shape(), Shape({kUnknown, 2}));
    const Functional model({.inputs = in, .outputs = out});
    layer->set_embedding_tables({{"items", counting()}});
    const Tensors y = model(Tensors({{"a", TensorLike(RaggedTensor::from_rows(kRows))},
                                     {"b", TensorLike(Tensor::from<int64_t>({3, 4}, {2}))}}));
    EXPECT_EQ(values_of(y["a"]), (Values{1, 10, 14, 140}));
    EXPECT_EQ(values_of(y["b"]), (Values{3, 30, 4, 40}));
  }
}

TEST(DistributedEmbeddingTest, OutputShapesAreTheConfiguredOnes) {
  const auto table = small_table("items");
  const DistributedEmbedding layer(
      {.feature_configs = Features({{"a", feature(table, {8, 4})}, {"b", feature(table, {8})}})});
  const Nest<Shape> shapes =
      layer->compute_output_shape(Nest<Shape>({{"a", Shape{8, 4}}, {"b", Shape{kUnknown}}}));
  EXPECT_EQ(shapes["a"].leaf(), Shape({8, 2}));
  EXPECT_EQ(shapes["b"].leaf(), Shape({8, 2}));
  const auto refused = [&](const Shape& a, const Shape& b) {
    return message_of([&] { layer->compute_output_shape(Nest<Shape>({{"a", a}, {"b", b}})); });
  };
  EXPECT_THAT(refused({8, 3}, {8}), HasSubstr("'a'"));
  EXPECT_THAT(refused({7, 4}, {8}), HasSubstr("'a'"));
  EXPECT_THAT(refused({8, 4}, {}), HasSubstr("'b'"));
  EXPECT_THAT(refused({8, 4}, {8, 1}), HasSubstr("'b'"));
  EXPECT_THROW(layer->compute_output_shape(Nest<Shape>({{"a", Shape{8, 4}}})), ValueError);
}

TEST(DistributedEmbeddingTest, BuildAcceptsTheGlobalBatchOrThatOfAReplica) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  for (const int64_t rows : {8, 4, 3}) {
    const DistributedEmbedding layer({.feature_configs = feature(small_table("items"), {8})});
    const Specs specs = TensorSpec{.shape = {rows}, .dtype = DType::kInt64};
    if (rows == 3) {
      EXPECT_THROW(layer->build(specs), ValueError);
    } else {
      EXPECT_NO_THROW(layer->build(specs));
    }
  }
}

TEST(DistributedEmbeddingTest, LaterBatchesMayBeShorter) {
  const DistributedEmbedding layer({.feature_configs = feature(small_table("items"), {2, 2})});
  layer(Tensor::zeros({2, 2}, DType::kInt64));
  EXPECT_EQ(layer(Tensor::zeros({1, 2}, DType::kInt64)).shape(), Shape({1, 2}));
  EXPECT_THROW(layer(Tensor::zeros({2, 3}, DType::kInt64)), ValueError);
}

TEST(DistributedEmbeddingTest, ErrorsOfAFeatureCarryItsPath) {
  distribute::CPUStrategy cpu;
  TPUStrategy tpu({.num_cores = 2});
  for (distribute::Strategy* strategy :
       {static_cast<distribute::Strategy*>(&cpu), static_cast<distribute::Strategy*>(&tpu)}) {
    const auto scope = strategy->scope();
    const DistributedEmbedding layer(
        {.feature_configs =
             Features({{"group", Features({{"seen", feature(small_table("items"), {2, 2})}})}})});
    const auto call = [&](const TensorLike& ids, const std::optional<TensorLike>& weights) {
      return message_if_any([&] {
        DistributedEmbeddingCallOptions options;
        if (weights) options.weights = Weights({{"group", Weights({{"seen", weights}})}});
        strategy->run([&] { layer(Tensors({{"group", Tensors({{"seen", ids}})}}), options); });
      });
    };
    const TensorLike good = Tensor::zeros({2, 2}, DType::kInt64);
    EXPECT_EQ(call(good, {}), "");
    const std::string path = "'group/seen'";
    EXPECT_THAT(call(Tensor::full<int64_t>({2, 2}, 8), {}), HasSubstr(path));
    EXPECT_THAT(call(Tensor::full<int64_t>({2, 2}, -1), {}), HasSubstr(path));
    EXPECT_THAT(call(RaggedTensor::from_rows(Rows{{1}, {9}}), {}), HasSubstr(path));
    EXPECT_THAT(call(Tensor::zeros({2}, DType::kInt64), {}), HasSubstr(path));
    EXPECT_THAT(call(Tensor::zeros({2, 2}, DType::kString), {}), HasSubstr(path));
    EXPECT_THAT(call(good, Tensor::zeros({2, 3})), HasSubstr(path));
    EXPECT_THAT(call(good, RaggedTensor::from_rows(kRowWeights)), HasSubstr(path));
    EXPECT_EQ(call(good, {}), "");
  }
}

TEST(DistributedEmbeddingTest, DifferentStructuresAreRejected) {
  const auto table = small_table("items");
  const DistributedEmbedding layer({.feature_configs = Features({{"a", feature(table, {2})}})});
  const Tensor ids = Tensor::zeros({2}, DType::kInt64);
  EXPECT_THROW(layer(Tensors({{"b", TensorLike(ids)}})), ValueError);
  EXPECT_THROW(layer(Tensors::list({ids})), TypeError);
  EXPECT_THROW(layer->preprocess(Tensors::list({ids})), TypeError);
  EXPECT_THROW(layer(Tensors({{"a", TensorLike(ids)}}), {.weights = Weights::list({})}), TypeError);
}

TEST(DistributedEmbeddingTest, WrongConfigsAreRejectedWithTheirPath) {
  const auto make = [](const std::function<void(keras_rs::TableConfig&)>& change,
                       const std::function<void(keras_rs::FeatureConfig&)>& change_feature) {
    const auto table = small_table("items");
    change(*table);
    keras_rs::FeatureConfig config = feature(table, {2, 3});
    change_feature(config);
    DistributedEmbedding({.feature_configs = Features({{"x", config}})});
  };
  const auto with_table = [&](const std::function<void(keras_rs::TableConfig&)>& change) {
    return message_of([&] { make(change, [](keras_rs::FeatureConfig&) {}); });
  };
  const auto with_feature = [&](const std::function<void(keras_rs::FeatureConfig&)>& change) {
    return message_of([&] { make([](keras_rs::TableConfig&) {}, change); });
  };
  EXPECT_NO_THROW(make([](auto&) {}, [](auto&) {}));
  EXPECT_THAT(with_table([](auto& t) { t.name = ""; }), HasSubstr("'x'"));
  EXPECT_THAT(with_table([](auto& t) { t.name = "a/b"; }), HasSubstr("'x'"));
  EXPECT_THAT(with_table([](auto& t) { t.vocabulary_size = 0; }), HasSubstr("'x'"));
  EXPECT_THAT(with_table([](auto& t) { t.embedding_dim = 0; }), HasSubstr("'x'"));
  EXPECT_THAT(with_table([](auto& t) { t.placement = "hbm"; }), HasSubstr("'x'"));
  EXPECT_THAT(with_feature([](auto& f) { f.table = nullptr; }), HasSubstr("'x'"));
  EXPECT_THAT(with_feature([](auto& f) { f.input_shape = {}; }), HasSubstr("'x'"));
  EXPECT_THAT(with_feature([](auto& f) { f.input_shape = {2, 3, 4}; }), HasSubstr("'x'"));
  EXPECT_THAT(with_feature([](auto& f) { f.output_shape = {2, 3}; }), HasSubstr("'x'"));
  EXPECT_THAT(with_feature([](auto& f) { f.output_shape = {3, 2}; }), HasSubstr("'x'"));
  EXPECT_THAT(with_feature([](auto& f) { f.output_shape = {2, 3, 2}; }), HasSubstr("'x'"));
  const auto combiner = small_table("items", "max");
  EXPECT_THROW(DistributedEmbedding({.feature_configs = feature(combiner, {2})}), ValueError);
}

TEST(DistributedEmbeddingTest, NamesAndPathsAreUnique) {
  const auto a = small_table("same"), b = small_table("same");
  EXPECT_THAT(message_of([&] {
                DistributedEmbedding(
                    {.feature_configs = Features::list({feature(a, {2}), feature(b, {2})})});
              }),
              HasSubstr("'same'"));
  EXPECT_THROW(DistributedEmbedding(
                   {.feature_configs = Features(
                        {{"a/b", feature(a, {2})}, {"a", Features({{"b", feature(a, {2})}})}})}),
               ValueError);
}

TEST(DistributedEmbeddingTest, ErrorsOfSparseCoresNameTheLayer) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const auto table = small_table("items");
  const std::vector<std::string> twice = {"items", "items"};
  EXPECT_THROW(
      DistributedEmbedding({.feature_configs = feature(table, {2}), .table_stacking = twice}),
      ValueError);
  table->optimizer = {};
  EXPECT_THAT(message_of([&] { DistributedEmbedding({.feature_configs = feature(table, {2})}); }),
              HasSubstr("'items'"));
  const auto limited = small_table("limited");
  limited->max_ids_per_partition = 0;
  EXPECT_THROW(DistributedEmbedding({.feature_configs = feature(limited, {2}),
                                     .id_limit_policy = IdLimitPolicy::kError}),
               ValueError);
}

TEST(DistributedEmbeddingTest, TablesOnSparseCoresNeedTheirStrategy) {
  const auto table = small_table("items");
  TPUStrategy tpu({.num_cores = 2});
  std::optional<DistributedEmbedding> layer;
  {
    const auto scope = tpu.scope();
    layer.emplace(DistributedEmbeddingOptions{.feature_configs = feature(table, {4})});
    (*layer)->build(Specs(TensorSpec{.shape = {4}, .dtype = DType::kInt64}));
  }
  EXPECT_THROW((*layer)(Tensor::zeros({4}, DType::kInt64)), RuntimeError);
}

TEST(DistributedEmbeddingTest, AStrategyHasTheTablesOfOneLayer) {
  TPUStrategy tpu({.num_cores = 2});
  const auto scope = tpu.scope();
  const Specs specs = TensorSpec{.shape = {4}, .dtype = DType::kInt64};
  const DistributedEmbedding first({.feature_configs = feature(small_table("a"), {4})});
  const DistributedEmbedding second({.feature_configs = feature(small_table("b"), {4})});
  first->build(specs);
  EXPECT_THROW(second->build(specs), RuntimeError);
  const DistributedEmbedding elsewhere(
      {.feature_configs = feature(small_table("c", "sum", "default_device"), {4})});
  EXPECT_NO_THROW(elsewhere->build(specs));
}

TEST(SpecRowsI, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "DistributedEmbedding",
                         .config = R"({"name": "distributed",
    "tables": [{"name": "t", "vocabulary_size": 9, "embedding_dim": 4}], "feature_configs":
    {"name": "f", "table": 0, "input_shape": [null, 3], "output_shape": [null, 4]}})",
                         .inputs = int_spec({2, 3}),
                         .output = float_spec({2, 4}),
                         .trainable_weights = 1,
                         .weights = 1});
}

}  // namespace keel::distributed_embedding_test
