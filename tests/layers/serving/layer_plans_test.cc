// Plans of layers (Layer::plan): each gives the results of the layer's call().
#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/layers/activation/activation.h>
#include <keel/layers/core/core.h>
#include <keel/layers/core/embedding.h>
#include <keel/layers/functional/sequential.h>
#include <keel/layers/interaction/interaction.h>
#include <keel/layers/merging/merging.h>
#include <keel/layers/normalization/batch_normalization.h>
#include <keel/layers/normalization/layer_normalization.h>
#include <keel/layers/normalization/normalization.h>
#include <keel/layers/preprocessing/lookup.h>
#include <keel/layers/regularization/regularization.h>
#include <keel/layers/reshaping/reshaping.h>
#include <keel/layers/serving/serving_plan.h>

#include "tests/layers/serving/models.h"

namespace keel::layer_plans_test {

using namespace serving_test;  // NOLINT: the models are what these tests are about
using Names = std::vector<std::string>;

// Expects bitwise equal results of model and plan; returns the layers that the plan calls.
Names compare(const ModelHandle& model, const Tensors& batch) {
  const ServingPlan plan(model);
  const Tensors expected = model(batch), received = plan(batch);
  EXPECT_EQ(received.structure(), expected.structure());
  const auto e = flatten(expected), r = flatten(received);
  for (size_t i = 0; i < e.size(); ++i) {
    EXPECT_EQ(r[i].spec(), e[i].spec()) << plan.summary();
    EXPECT_EQ(r[i].tensor().to_vector<float>(), e[i].tensor().to_vector<float>()) << plan.summary();
  }
  return plan.called_layers();
}

// Places a layer on rows of 6 floats between two products.
template <class L>
Names compare_layer(const L& layer, const Shape& row = {6}) {
  const Tensor x = layers::input({.shape = row, .name = "x"});
  const Tensor y = layer(layers::Dense({.units = row[-1], .bias_initializer = "normal"})(x));
  const Tensor z = layers::Dense({.units = 3})(y);
  return compare(Functional({.inputs = x, .outputs = Tensors::list({y, z})}),
                 random_floats(Shape{11} + row, 1));
}

TEST(LayerPlans, OfActivations) {
  for (const char* name : {"linear", "relu", "leaky_relu", "elu", "sigmoid", "tanh", "silu",
                           "softplus", "exponential", "gelu", "softmax"}) {
    EXPECT_EQ(compare_layer(layers::Activation({.activation = name})), Names()) << name;
    EXPECT_EQ(compare_layer(layers::Dense({.units = 5, .activation = name})), Names()) << name;
  }
  EXPECT_EQ(compare_layer(layers::ReLU({})), Names());
  EXPECT_EQ(compare_layer(layers::LeakyReLU({.negative_slope = 0.3})), Names());
  EXPECT_EQ(compare_layer(layers::ELU({.alpha = 0.5})), Names());
}

TEST(LayerPlans, OfUnplannedActivationsCallTheLayer) {
  EXPECT_EQ(compare_layer(layers::Activation({.activation = "mish", .name = "odd"})),
            Names({"odd"}));
  EXPECT_EQ(compare_layer(layers::ReLU({.max_value = 1.0, .name = "capped"})), Names({"capped"}));
}

TEST(LayerPlans, OfUserFunctionsWithABuiltInNameCallThem) {
  const Activation own("relu", [](const Tensor& x) { return x + 1.0; });
  EXPECT_EQ(compare_layer(layers::Dense({.units = 4, .activation = own, .name = "own"})),
            Names({"own"}));
}

TEST(LayerPlans, OfDenseOverTheLastOfSeveralAxes) {
  EXPECT_EQ(compare_layer(layers::Dense({.units = 4, .activation = "softmax"}), {3, 5}), Names());
}

TEST(LayerPlans, OfRowsOfNoElementsAreOfTheBias) {
  const Tensor x = layers::input({.shape = {0}, .name = "x"});
  const Tensor y = layers::Dense({.units = 3, .bias_initializer = "normal"})(x);
  EXPECT_EQ(compare(Functional({.inputs = x, .outputs = y}), Tensor::zeros({5, 0})), Names());
}

TEST(LayerPlans, OfLayersThatOnlyChangeShapesOrNothing) {
  EXPECT_EQ(compare_layer(layers::Flatten({}), {2, 3}), Names());
  EXPECT_EQ(compare_layer(layers::Reshape({.target_shape = {-1, 2}}), {3, 4}), Names());
  EXPECT_EQ(compare_layer(layers::Dropout({.rate = 0.5})), Names());
  EXPECT_EQ(compare_layer(layers::Identity({})), Names());
}

TEST(LayerPlans, OfBatchNormalizationAndRescaling) {
  const layers::BatchNormalization norm({.beta_initializer = "normal",
                                         .gamma_initializer = "normal",
                                         .moving_mean_initializer = "normal"});
  EXPECT_EQ(compare_layer(norm), Names());
  EXPECT_EQ(compare_layer(layers::BatchNormalization({.center = false, .scale = false}), {2, 4}),
            Names());
  EXPECT_EQ(compare_layer(layers::Rescaling({.scale = 0.3, .offset = -1.0})), Names());
}

TEST(LayerPlans, OfNormalizations) {
  const auto normalization = [](bool invert) {
    return layers::Normalization(
        {.mean = {{1, 2, 3, 4, 5, 6}}, .variance = {{1, 4, 2, 3, 0, 9}}, .invert = invert});
  };
  EXPECT_EQ(compare_layer(normalization(false)), Names());
  EXPECT_EQ(compare_layer(normalization(true)), Names());
  layers::Normalization adapted({.axis = std::nullopt});
  adapted->adapt(random_floats({9, 6}, 4));
  EXPECT_EQ(compare_layer(adapted), Names());
}

TEST(LayerPlans, OfLayersWithoutAPlanCallThem) {
  EXPECT_EQ(compare_layer(layers::LayerNormalization({.name = "norm"})), Names({"norm"}));
}

TEST(LayerPlans, OfMergingLayers) {
  const auto check = [](const auto& layer) {
    const Tensor x = layers::input({.shape = {5}, .name = "x"});
    const Tensor a = layers::Dense({.units = 6})(x), b = layers::Dense({.units = 6})(x);
    const Tensor y = layer(Tensors::list({a, b})).tensor();
    EXPECT_EQ(compare(Functional({.inputs = x, .outputs = y}), random_floats({9, 5}, 1)), Names());
  };
  check(layers::Add({}));
  check(layers::Multiply({}));
  check(layers::Subtract({}));
  check(layers::Average({}));
  check(layers::Maximum({}));
  check(layers::Minimum({}));
}

TEST(LayerPlans, OfConcatenateWithSharedParts) {
  const Tensor x = layers::input({.shape = {5}, .name = "x"});
  const Tensor a = layers::Dense({.units = 3})(x), b = layers::Dense({.units = 2})(x);
  const Tensor ab = concatenated({a, b}), all = concatenated({b, ab, x, a, a});
  const Tensor y = layers::Dense({.units = 4})(all);
  const Functional model({.inputs = x, .outputs = Tensors::list({a, all, y, ab})});
  EXPECT_EQ(compare(model, random_floats({130, 5}, 1)), Names());
}

TEST(LayerPlans, OfFeatureCrosses) {
  for (const auto& options :
       {FeatureCrossOptions{}, FeatureCrossOptions{.projection_dim = 3, .diag_scale = 0.5},
        FeatureCrossOptions{.use_bias = false, .pre_activation = "relu"}}) {
    const Tensor x0 = layers::input({.shape = {8}, .name = "x"});
    Tensor x = layers::FeatureCross(options)(x0);
    x = layers::FeatureCross(options)(Tensors::list({x0, x})).tensor();
    EXPECT_EQ(compare(Functional({.inputs = x0, .outputs = x}), random_floats({20, 8}, 1)),
              Names());
  }
}

TEST(LayerPlans, OfDotInteractions) {
  const Tensor x = layers::input({.shape = {4, 20}, .name = "x"});
  const Tensor y = layers::DotInteraction({.self_interaction = true})(x);
  EXPECT_EQ(compare(Functional({.inputs = x, .outputs = y}), random_floats({7, 4, 20}, 1)),
            Names());
  const Tensor z = layers::DotInteraction({.skip_gather = true, .name = "matrix"})(x);
  EXPECT_EQ(compare(Functional({.inputs = x, .outputs = z}), random_floats({7, 4, 20}, 1)),
            Names({"matrix"}));
}

TEST(LayerPlans, OfNestedModelsAndSharedLayers) {
  const Sequential tower({.layers = {layers::Dense({.units = 6, .activation = "relu"}),
                                     layers::Dropout({.rate = 0.3}), layers::Dense({.units = 4})}});
  const Tensor in = layers::input({.shape = {3}, .name = "in"});
  const layers::Dense shared({.units = 4});
  const Functional inner({.inputs = Tensors({{"in", in}}),
                          .outputs = shared(shared(layers::Dense({.units = 4})(in)))});
  const Tensor a = layers::input({.shape = {3}, .name = "a"});
  const Tensor b = layers::input({.shape = {3}, .name = "b"});
  const Tensor left = inner(Tensors({{"in", a}})).tensor();
  const Tensor right = tower(b);
  const Tensor again = inner(Tensors({{"in", b}})).tensor();
  const Functional model(
      {.inputs = Tensors({{"a", a}, {"b", b}}),
       .outputs = Tensors(
           {{"sum", layers::Add({})(Tensors::list({left, right})).tensor()}, {"again", again}})});
  EXPECT_EQ(
      compare(model, Tensors({{"a", random_floats({5, 3}, 1)}, {"b", random_floats({5, 3}, 2)}})),
      Names());
}

TEST(LayerPlans, OfSequentialModelsBuiltByACall) {
  const Sequential model({.layers = {layers::Embedding({.input_dim = 9, .output_dim = 4}),
                                     layers::Flatten({}), layers::Dense({.units = 2})}});
  const Tensor ids = random_ids({6, 3}, 9, 1);
  model(ids);
  EXPECT_EQ(compare(model, ids), Names());
}

TEST(LayerPlans, OfOpsAndConstantsCallThem) {
  const Tensor x = layers::input({.shape = {4}, .name = "x"});
  const Tensor y = layers::Dense({.units = 4})(x) * x + random_floats({4}, 3);
  const Functional model({.inputs = x, .outputs = layers::Dense({.units = 2})(y)});
  EXPECT_EQ(compare(model, random_floats({130, 4}, 1)), Names({"Multiply", "Add"}));
}

TEST(LayerPlans, OfLayersThatSeeMasksCallThem) {
  const Tensor ids = layers::input({.shape = {4}, .dtype = DType::kInt64, .name = "ids"});
  const Tensor rows =
      layers::Embedding({.input_dim = 5, .output_dim = 3, .mask_zero = true, .name = "rows"})(ids);
  const Tensor scaled = layers::Rescaling({.scale = 2.0, .name = "scaled"})(rows);
  const Functional model({.inputs = ids, .outputs = layers::Flatten({.name = "flat"})(scaled)});
  EXPECT_EQ(compare(model, random_ids({6, 4}, 5, 1)), Names({"rows", "scaled"}));
}

TEST(LayerPlans, OfLookupsOfComputedIds) {
  const Tensor raw = layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "raw"});
  const layers::IntegerLookup lookup({.vocabulary = {{30, 10, 20}}, .name = "index"});
  const Tensor rows = layers::Embedding({.input_dim = 4, .output_dim = 3})(lookup(raw));
  const Functional model({.inputs = raw, .outputs = layers::Flatten({})(rows)});
  EXPECT_EQ(compare(model, Tensor::from<int64_t>({10, 30, 99, 20, 20, 10}, {3, 2})),
            Names({"index"}));
}

// Ragged and sparse features with a combiner, pooled, in addition to dense ones.
class PooledFeatures : public testing::TestWithParam<const char*> {};

TEST_P(PooledFeatures, ResultsMatchTheLayer) {
  const Nest<FeatureConfig>::Dict features = {
      {"dense", FeatureConfig{.table = table(20, 12, GetParam())}},
      {"ragged", FeatureConfig{.table = table(20, 16, GetParam())}},
      {"sparse", FeatureConfig{.table = table(20, 5, GetParam())}}};
  const Tensors::Dict inputs = {
      {"dense", layers::input({.shape = {2}, .dtype = DType::kInt64, .name = "dense"})},
      {"ragged", layers::ragged_input({.dtype = DType::kInt64, .name = "ragged"})},
      {"sparse",
       layers::sparse_input({.shape = {kUnknown}, .dtype = DType::kInt64, .name = "sparse"})}};
  const Tensors rows =
      layers::TPUEmbedding({.feature_config = Nest<FeatureConfig>(features)})(Tensors(inputs));
  const Functional model({.inputs = Tensors(inputs), .outputs = rows});
  constexpr int64_t kRows = 150;
  std::vector<std::vector<int64_t>> bags;
  std::vector<int64_t> indices, ids;
  for (int64_t r = 0; r < kRows; ++r) {
    bags.emplace_back();
    for (int64_t j = 0; j < r % 5; ++j) bags.back().push_back((r * 7 + j) % 20);
    for (int64_t j = 0; j < r % 3; ++j) {
      indices.insert(indices.end(), {r, 2 * j});
      ids.push_back(r % 4 == 0 ? -1 : (r + j) % 20);  // negative ids are ignored
    }
  }
  const auto count = static_cast<int64_t>(ids.size());
  const Tensors::Dict batch = {
      {"dense", random_ids({kRows, 2}, 20, 1)},
      {"ragged", RaggedTensor::from_rows(bags)},
      {"sparse",
       SparseTensor{Tensor::from(indices, {count, 2}), Tensor::from(ids, {count}), {kRows, 6}}}};
  EXPECT_EQ(compare(model, Tensors(batch)), Names());
}

TEST_P(PooledFeatures, AcceptWeights) {
  const FeatureConfig feature = {.table = table(20, 16, GetParam())};
  const RaggedTensor ids = layers::ragged_input({.dtype = DType::kInt64, .name = "ids"});
  const RaggedTensor weights = layers::ragged_input({.name = "weights"});
  const Tensors rows = layers::TPUEmbedding({.feature_config = feature})(
      Tensors(ids), {.weights = Nest<std::optional<TensorLike>>(TensorLike(weights))});
  const Functional model({.inputs = Tensors::list({ids, weights}), .outputs = rows});
  const Tensors batch =
      Tensors::list({RaggedTensor::from_rows<int64_t>({{1, 2, 3}, {}, {4}}),
                     RaggedTensor::from_rows<float>({{0.5F, 2, 1}, {}, {-0.25F}})});
  EXPECT_EQ(compare(model, batch), Names());
  const ServingPlan plan{ModelHandle(model)};
  EXPECT_THROW(
      plan(Tensors::list({RaggedTensor::from_rows<int64_t>({{1, 2}, {}, {4}}), batch[1].leaf()})),
      ValueError);
}

INSTANTIATE_TEST_SUITE_P(Combiners, PooledFeatures, testing::Values("sum", "mean", "sqrtn"));

TEST(LayerPlans, OfWideAndDeep) {
  Tensors::Items wide, deep, inputs;
  for (int f = 0; f < 3; ++f) {
    const Tensor id =
        layers::input({.shape = {1}, .dtype = DType::kInt32, .name = "id" + std::to_string(f)});
    inputs.emplace_back(id);
    wide.emplace_back(
        layers::Flatten({})(layers::Embedding({.input_dim = 9, .output_dim = 1})(id)));
    deep.emplace_back(
        layers::Flatten({})(layers::Embedding({.input_dim = 9, .output_dim = 8})(id)));
  }
  const Tensor numbers = layers::input({.shape = {4}, .name = "numbers"});
  inputs.emplace_back(numbers);
  deep.emplace_back(numbers);
  Tensor x = concatenated(deep);
  for (int64_t units : {20, 10, 1}) x = layers::Dense({.units = units, .activation = "relu"})(x);
  wide.emplace_back(x);
  const Tensor sum = layers::Add({})(Tensors::list(wide)).tensor();
  const Functional model({.inputs = Tensors::list(inputs),
                          .outputs = layers::Activation({.activation = "sigmoid"})(sum)});
  Tensors::Items batch;
  for (int f = 0; f < 3; ++f) batch.emplace_back(random_ids({31, 1}, 9, f).cast(DType::kInt32));
  batch.emplace_back(random_floats({31, 4}, 9));
  EXPECT_EQ(compare(model, Tensors::list(batch)), Names());
}

}  // namespace keel::layer_plans_test
