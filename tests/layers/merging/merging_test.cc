// Tests layers/merging/ and layers/merging/internal/.
#include <keel/layers/merging/merging.h>

#include <cmath>

#include <gtest/gtest.h>

#include <keel/autodiff/ops.h>
#include <keel/autodiff/tape.h>
#include <keel/layers/functional/functional.h>

#include "tests/support/layer_contract.h"

namespace keel::merging_test {

using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::float_spec_pair;
using Values = std::vector<float>;

Tensors pair() {
  return Tensors::list(
      {Tensor::from<float>({1, 5, 3, 4}, {2, 2}), Tensor::from<float>({2, 2, 6, 4}, {2, 2})});
}

Values merged(const LayerHandle<Layer>& layer, const Tensors& inputs) {
  return layer(inputs).tensor().to_vector<float>();
}

TEST(MergingTest, LayersMergeElementByElement) {
  EXPECT_EQ(merged(layers::Add({}), pair()), (Values{3, 7, 9, 8}));
  EXPECT_EQ(merged(layers::Subtract({}), pair()), (Values{-1, 3, -3, 0}));
  EXPECT_EQ(merged(layers::Multiply({}), pair()), (Values{2, 10, 18, 16}));
  EXPECT_EQ(merged(layers::Average({}), pair()), (Values{1.5, 3.5, 4.5, 4}));
  EXPECT_EQ(merged(layers::Maximum({}), pair()), (Values{2, 5, 6, 4}));
  EXPECT_EQ(merged(layers::Minimum({}), pair()), (Values{1, 2, 3, 4}));
}

TEST(MergingTest, AcceptsTuplesAndSingleTensors) {
  EXPECT_EQ(merged(layers::Add({}), Tensors::tuple(pair().items())), (Values{3, 7, 9, 8}));
  EXPECT_EQ(merged(layers::Add({}), pair()[0]), (Values{1, 5, 3, 4}));
}

TEST(MergingTest, TensorsOfLowerRankAreBroadcast) {
  const Tensors inputs =
      Tensors::list({Tensor::from<float>({1, 2}, {2, 1}), Tensor::zeros({2, 2, 1})});
  EXPECT_EQ(merged(layers::Add({}), inputs), (Values{1, 1, 2, 2}));
}

TEST(MergingTest, ShapesOfResultsFollowFromSymbolicInputs) {
  const Tensors inputs =
      Tensors::list({layers::input({.shape = {3, 1}}), layers::input({.shape = {4}})});
  EXPECT_EQ(layers::Multiply({})(inputs).tensor().shape(), Shape({kUnknown, 3, 4}));
}

// Keras casts floats to the dtype of the layer and promotes the results.
TEST(MergingTest, FloatsHaveTheDtypeOfTheLayerAndIntegersArePromoted) {
  const Tensor whole = Tensor::from<int32_t>({1, 2}, {1, 2});
  const Tensor wide = Tensor::from<int64_t>({3, 5}, {1, 2});
  const Tensor single = Tensor::from<float>({0.5F, 0.25F}, {1, 2});
  const Tensor twice = Tensor::from<double>({0.1, 0.2}, {1, 2});
  const auto expect = [](const Tensor& y, const Tensor& expected) {
    EXPECT_EQ(y.dtype(), expected.dtype());
    EXPECT_EQ(y.cast(DType::kFloat64).to_vector<double>(),
              expected.cast(DType::kFloat64).to_vector<double>());
  };
  const auto list = [](const Tensor& a, const Tensor& b) { return Tensors::list({a, b}); };
  const auto float32 = [](std::vector<float> values) {
    const auto n = std::ssize(values);
    return Tensor::from(std::move(values), {1, n});
  };
  expect(layers::Add({})(list(whole, single)).tensor(), float32({1.5F, 2.25F}));
  expect(layers::Multiply({})(list(single, whole)).tensor(), float32({0.5F, 0.5F}));
  expect(layers::Maximum({})(list(whole, single)).tensor(), float32({1, 2}));
  expect(layers::Add({})(list(whole, wide)).tensor(), Tensor::from<int64_t>({4, 7}, {1, 2}));
  expect(layers::Subtract({})(list(whole, whole)).tensor(), Tensor::from<int32_t>({0, 0}, {1, 2}));
  expect(layers::Average({})(list(whole, wide)).tensor(), float32({2, 3.5F}));
  expect(layers::Add({})(list(twice, twice)).tensor(), float32({0.1F + 0.1F, 0.2F + 0.2F}));
  expect(layers::Add({.dtype = DType::kFloat64})(list(twice, single)).tensor(),
         Tensor::from<double>({0.6, 0.45}, {1, 2}));
  expect(layers::Concatenate({})(list(twice, single)).tensor(), float32({0.1F, 0.2F, 0.5F, 0.25F}));
  expect(layers::Concatenate({})(list(whole, wide)).tensor(),
         Tensor::from<int64_t>({1, 2, 3, 5}, {1, 4}));
  expect(layers::Concatenate({})(list(whole, single)).tensor(), float32({1, 2, 0.5F, 0.25F}));
  expect(layers::Dot({})(list(whole, single)).tensor(), float32({1}));
}

TEST(MergingTest, MasksOutlastThePromotion) {
  const Tensor x = Tensor::from<double>({3, 4}, {1, 2, 1})
                       .with_mask(Tensor::from(std::vector<bool>{true, false}, {1, 2}));
  const Tensor y = Tensor::from<int32_t>({5, 7}, {1, 2, 1});
  EXPECT_EQ(merged(layers::Multiply({}), Tensors::list({x, y})), (Values{15, 7}));
  EXPECT_TRUE(layers::Concatenate({})(Tensors::list({x, y})).tensor().mask());
}

TEST(MergingTest, ModelsMergeInputsOfSeveralDtypes) {
  const Tensor a = layers::input({.shape = {2}, .dtype = DType::kInt32, .name = "a"});
  const Tensor b = layers::input({.shape = {2}, .name = "b"});
  const Tensor c = layers::input({.shape = {2}, .dtype = DType::kFloat64, .name = "c"});
  const Tensor sum = layers::Add({})(Tensors::list({a, b})).tensor();
  EXPECT_EQ(sum.dtype(), DType::kFloat32);
  const Functional model({.inputs = Tensors::list({a, b, c}),
                          .outputs = layers::Concatenate({})(Tensors::list({sum, c}))});
  const Tensors out = model(Tensors::list({Tensor::from<int32_t>({1, 2}, {1, 2}),
                                           Tensor::from<float>({0.5F, 0.25F}, {1, 2}),
                                           Tensor::from<double>({0.1, 0.7}, {1, 2})}));
  EXPECT_EQ(out.tensor().to_vector<float>(), (Values{1.5F, 2.25F, 0.1F, 0.7F}));
}

TEST(MergingTest, RejectsOtherThanListsOfDenseTensors) {
  const layers::Add add({});
  EXPECT_THROW(add(Tensors{{"a", Tensor::zeros({1})}}), TypeError);
  EXPECT_THROW(add(Tensors(RaggedTensor::from_rows<float>({{1}}))), TypeError);
  EXPECT_THROW(add(Tensors::list({pair()})), TypeError);
  EXPECT_THROW(add(Tensors::list({})), ValueError);
}

TEST(MergingTest, RejectsShapesThatDoNotAgree) {
  const Tensors inputs = Tensors::list({Tensor::zeros({2, 2}), Tensor::zeros({2, 3})});
  EXPECT_THROW(layers::Add({})(inputs), ValueError);
  EXPECT_THROW(layers::Concatenate({.axis = 0})(inputs), ValueError);
}

TEST(MergingTest, SubtractRequiresTwoTensors) {
  const layers::Subtract subtract({});
  EXPECT_THROW(subtract(Tensors::list({Tensor::zeros({1})})), ValueError);
  const Tensor t = Tensor::zeros({1});
  EXPECT_THROW(subtract(Tensors::list({t, t, t})), ValueError);
}

// Two sequences of two steps. The masks exclude step 1 of the first and step 0 of the second.
Tensors masked_pair() {
  const Tensor x = Tensor::from<float>({2, 3, 4, 5}, {1, 2, 2});
  const Tensor y = Tensor::from<float>({7, 7, 9, 1}, {1, 2, 2});
  return Tensors::list({x.with_mask(Tensor::from<bool>({true, false}, {1, 2})),
                        y.with_mask(Tensor::from<bool>({false, true}, {1, 2}))});
}

Tensors half_masked_pair() {
  const Tensors both = masked_pair();
  return Tensors::list({both[0].tensor(), both[1].tensor().with_mask(Tensor())});
}

std::vector<bool> mask_of(const LayerHandle<Layer>& layer, const Tensors& inputs) {
  return layer(inputs).tensor().mask().to_vector<bool>();
}

TEST(MergingTest, MasksAreCombinedByOr) {
  EXPECT_EQ(mask_of(layers::Add({}), masked_pair()), (std::vector<bool>{true, true}));
  const Tensor mask = Tensor::from<bool>({true, false}, {1, 2});
  const Tensor t = Tensor::zeros({1, 2, 2}).with_mask(mask);
  EXPECT_EQ(mask_of(layers::Subtract({}), Tensors::list({t, t})), (std::vector<bool>{true, false}));
  EXPECT_FALSE(layers::Add({})(half_masked_pair()).tensor().mask());
}

TEST(MergingTest, MasksOfDifferentRanksAndShapesAreJoined) {
  const Tensor x = Tensor::zeros({1, 2, 3}).with_mask(Tensor::full<bool>({1}, false));
  const Tensor y =
      Tensor::zeros({1, 1, 3}).with_mask(Tensor::from<bool>({true, false, true}, {1, 1, 3}));
  EXPECT_EQ(mask_of(layers::Add({}), Tensors::list({x, y})),
            (std::vector<bool>{true, false, true, true, false, true}));
}

TEST(MergingTest, SumsIgnoreMasks) {
  EXPECT_EQ(merged(layers::Add({}), masked_pair()), (Values{9, 10, 13, 6}));
  EXPECT_EQ(merged(layers::Average({}), masked_pair()), (Values{4.5, 5, 6.5, 3}));
}

TEST(MergingTest, MultiplyTreatsMaskedElementsAsOne) {
  EXPECT_EQ(merged(layers::Multiply({}), masked_pair()), (Values{2, 3, 9, 1}));
  EXPECT_EQ(merged(layers::Multiply({}), half_masked_pair()), (Values{14, 21, 9, 1}));
  const Tensor none = Tensor::full<float>({1, 2}, 5).with_mask(Tensor::full<bool>({1}, false));
  EXPECT_EQ(merged(layers::Multiply({}), Tensors::list({none, none})), (Values{0, 0}));
}

TEST(MergingTest, ExtremaIgnoreMaskedElements) {
  EXPECT_EQ(merged(layers::Maximum({}), masked_pair()), (Values{2, 3, 9, 1}));
  EXPECT_EQ(merged(layers::Minimum({}), masked_pair()), (Values{2, 3, 9, 1}));
  EXPECT_EQ(merged(layers::Maximum({}), half_masked_pair()), (Values{7, 7, 9, 1}));
}

TEST(ConcatenateTest, ConcatenatesMasks) {
  EXPECT_EQ(mask_of(layers::Concatenate({.axis = 1}), masked_pair()),
            (std::vector<bool>{true, false, false, true}));
  EXPECT_EQ(mask_of(layers::Concatenate({}), masked_pair()), (std::vector<bool>{true, true}));
  EXPECT_EQ(mask_of(layers::Concatenate({.axis = 1}), half_masked_pair()),
            (std::vector<bool>{true, false, true, true}));
  EXPECT_FALSE(layers::Concatenate({})(pair()).tensor().mask());
}

TEST(DotTest, HasNoMask) { EXPECT_FALSE(layers::Dot({.axes = 2})(masked_pair()).tensor().mask()); }

TEST(ConcatenateTest, ConcatenatesAlongItsAxis) {
  EXPECT_EQ(merged(layers::Concatenate({}), pair()), (Values{1, 5, 2, 2, 3, 4, 6, 4}));
  EXPECT_EQ(merged(layers::Concatenate({.axis = 0}), pair()), (Values{1, 5, 3, 4, 2, 2, 6, 4}));
}

TEST(DotTest, SumsProductsSampleBySample) {
  EXPECT_EQ(merged(layers::Dot({}), pair()), (Values{12, 34}));
}

TEST(DotTest, NormalizedDotIsTheCosine) {
  const Tensors inputs =
      Tensors::list({Tensor::from<float>({3, 4}, {1, 2}), Tensor::from<float>({4, 3}, {1, 2})});
  EXPECT_NEAR(merged(layers::Dot({.normalize = true}), inputs)[0], 24.0 / 25, 1e-6);
}

TEST(DotTest, TheGradientOfAZeroVectorIsFinite) {
  const Tensor x = Tensor::zeros({1, 2});
  GradientTape tape;
  tape.watch(x);
  const Tensors inputs = Tensors::list({x, Tensor::full<float>({1, 2}, 1)});
  const Tensor y = layers::Dot({.normalize = true})(inputs).tensor();
  EXPECT_EQ(y.item<float>(), 0);
  EXPECT_TRUE(std::isfinite(tape.input_gradient(y, {x})[0].dense().data<float>()[0]));
}

TEST(DotTest, ShapesFollowFromSymbolicInputs) {
  const Tensors inputs =
      Tensors::list({layers::input({.shape = {3, 4}}), layers::input({.shape = {5, 4}})});
  EXPECT_EQ(layers::Dot({.axes = 2})(inputs).tensor().shape(), Shape({kUnknown, 3, 5}));
}

TEST(DotTest, RejectsIncompatibleAxes) {
  const Tensors inputs = Tensors::list({Tensor::zeros({2, 3}), Tensor::zeros({2, 4})});
  EXPECT_THROW(layers::Dot({.axes = 1})(inputs), ValueError);
  EXPECT_THROW(layers::Dot({.axes = 0})(inputs), ValueError);
  EXPECT_THROW(layers::Dot({.axes = 2})(inputs), ValueError);
  EXPECT_THROW(layers::Dot({.axes = {1, 1, 1}}), ValueError);
  const Tensors batches = Tensors::list({Tensor::zeros({2, 3}), Tensor::zeros({1, 3})});
  EXPECT_THROW(layers::Dot({})(batches), ValueError);
}

TEST(MergingTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Add",
                         .config = "{}",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 3})});
  expect_layer_contract({.class_name = "Average",
                         .config = "{}",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 3})});
  expect_layer_contract({.class_name = "Concatenate",
                         .config = "{}",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 6})});
  expect_layer_contract({.class_name = "Dot",
                         .config = R"({"axes": [1, 1], "normalize": true})",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 1})});
  expect_layer_contract({.class_name = "Maximum",
                         .config = "{}",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 3})});
  expect_layer_contract({.class_name = "Minimum",
                         .config = "{}",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 3})});
  expect_layer_contract({.class_name = "Multiply",
                         .config = "{}",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 3})});
  expect_layer_contract({.class_name = "Subtract",
                         .config = "{}",
                         .inputs = float_spec_pair({2, 3}),
                         .output = float_spec({2, 3})});
}

}  // namespace keel::merging_test
