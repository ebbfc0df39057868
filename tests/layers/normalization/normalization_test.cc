#include <keel/layers/normalization/normalization.h>

#include <gtest/gtest.h>

#include <keel/framework/data/dataset.h>
#include <keel/layers/functional/functional.h>
#include <keel/layers/registry.h>

#include "tests/support/layer_contract.h"

namespace keel::normalization_test {

using layers::Normalization;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using Values = std::vector<float>;

Tensor samples() { return Tensor::from<float>({1, 10, 3, 10, 5, 40}, {3, 2}); }

TEST(NormalizationTest, LearnsMeanAndBiasedVarianceOfEachFeature) {
  const Normalization layer({});
  layer->adapt(samples());
  const auto weights = layer->weights();
  EXPECT_EQ(weights[0].read().to_vector<float>(), (Values{3, 20}));
  EXPECT_NEAR(weights[1].read().data<float>()[0], 8.0 / 3, 1e-6);
  EXPECT_EQ(weights[1].read().data<float>()[1], 200);
  EXPECT_EQ(weights[2].read().item<int64_t>(), 3);
  EXPECT_TRUE(layer->trainable_variables().empty());
}

TEST(NormalizationTest, BatchesOfADatasetMakeTheSameStatistics) {
  const Normalization whole({});
  const Normalization parts({});
  whole->adapt(samples());
  parts->adapt(data::Dataset::from_tensor_slices(samples()).batch(2));
  EXPECT_EQ(whole->weights()[1].read().to_vector<float>(),
            parts->weights()[1].read().to_vector<float>());
}

TEST(NormalizationTest, AdaptedDataHasMeanZeroAndVarianceOne) {
  const Normalization layer({.axis = std::nullopt});
  layer->adapt(samples());
  const Tensor y = layer(samples());
  double sum = 0;
  double squares = 0;
  for (float v : y.data<float>()) {
    sum += v;
    squares += v * v;
  }
  EXPECT_NEAR(sum, 0, 1e-5);
  EXPECT_NEAR(squares / 6, 1, 1e-5);
}

TEST(NormalizationTest, SmallVariancesOfLargeMeansAreAccurate) {
  const Normalization layer({});
  layer->adapt(Tensor::from<double>({1e9, 1e9 + 2}, {2, 1}));
  EXPECT_EQ(layer->weights()[1].read().item<float>(), 1);
}

TEST(NormalizationTest, BeforeAdaptItIsTheIdentity) {
  EXPECT_EQ(Normalization({})(samples()).to_vector<float>(), samples().to_vector<float>());
}

TEST(NormalizationTest, GivenStatisticsNeedNoWeights) {
  const Normalization layer({.mean = {{1, 10}}, .variance = {{4, 100}}});
  EXPECT_EQ(layer(samples()).to_vector<float>(), (Values{0, 0, 1, 0, 2, 3}));
  EXPECT_TRUE(layer->weights().empty());
}

TEST(NormalizationTest, OneNumberServesAllFeatures) {
  const Normalization layer({.mean = 1.0, .variance = 4.0});
  EXPECT_EQ(layer(Tensor::from<float>({1, 5}, {1, 2})).to_vector<float>(), (Values{0, 2}));
}

TEST(NormalizationTest, InvertIsTheInverse) {
  const Normalization layer({.mean = 1.0, .variance = 4.0, .invert = true});
  EXPECT_EQ(layer(Tensor::from<float>({0, 2}, {1, 2})).to_vector<float>(), (Values{1, 5}));
}

TEST(NormalizationTest, AConstantFeatureStaysFinite) {
  const Normalization layer({});
  layer->adapt(Tensor::full<float>({3, 1}, 7));
  EXPECT_EQ(layer(Tensor::full<float>({1, 1}, 7)).item<float>(), 0);
}

TEST(NormalizationTest, ConfigsHoldScalarsAndNestedLists) {
  const auto read = [](const char* config) {
    return layers::deserialize(
        Config::dict({{"class_name", "Normalization"}, {"config", parse_json(config)}}))(samples());
  };
  EXPECT_EQ(read(R"({"axis": null, "mean": 1, "variance": 4.0})").data<float>()[2], 1);
  EXPECT_EQ(read(R"({"axis": [-1], "mean": [[1, 10]], "variance": [[4, 100]]})").data<float>()[5],
            3);
}

TEST(NormalizationTest, KeepsMasks) {
  const Normalization layer({.mean = 1.0, .variance = 4.0});
  EXPECT_TRUE(layer(Tensor::zeros({1, 2}).with_mask(Tensor::full<bool>({1}, true))).mask());
}

TEST(NormalizationTest, RejectsIncompatibleArguments) {
  EXPECT_THROW(Normalization({.mean = 1.0}), ValueError);
  EXPECT_THROW(Normalization({.mean = {{1, 2, 3}}, .variance = 1.0})(samples()), ValueError);
  EXPECT_THROW(Normalization({})(layers::input({.shape = {kUnknown}})), ValueError);
  EXPECT_THROW(Normalization({.mean = 1.0, .variance = 1.0})->adapt(samples()), RuntimeError);
  const Normalization layer({});
  EXPECT_THROW(layer->adapt(Tensor::zeros({0, 2})), ValueError);
  EXPECT_THROW(layer->adapt(Tensor::zeros({1, 3})), ValueError);
}

TEST(NormalizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Normalization",
                         .config = "{}",
                         .inputs = float_spec({2, 3}),
                         .output = float_spec({2, 3}),
                         .weights = 3});
}

}  // namespace keel::normalization_test
