#include <cmath>
#include <limits>

#include <gtest/gtest.h>

#include <keel/framework/data/dataset.h>
#include <keel/layers/preprocessing/preprocessing.h>
#include <keel/layers/registry.h>

#include "tests/support/layer_contract.h"

namespace keel::discretization_test {

using layers::Discretization;
using testing_support::expect_layer_contract;
using testing_support::float_spec;
using testing_support::int_spec;
using Bins = std::vector<int64_t>;
using Boundaries = std::vector<double>;

Tensor samples() { return Tensor::from<float>({-1.5, 1.0, 3.4, 0.5, 0.0, 3.0, 1.3, 0.0}, {2, 4}); }

TEST(DiscretizationTest, ABoundaryBelongsToTheBinAboveIt) {
  const Discretization layer({.bin_boundaries = {{0, 1, 2}}});
  const Tensor y = layer(samples());
  EXPECT_EQ(y.shape(), Shape({2, 4}));
  EXPECT_EQ(y.to_vector<int64_t>(), (Bins{0, 2, 3, 1, 1, 3, 2, 1}));
}

TEST(DiscretizationTest, BoundariesAreFloat32Numbers) {
  // The float 0.1 is 0.1 + 1.5e-9, the float 0.7 is 0.7 - 1.2e-8. Keras puts both above their
  // boundaries, as all numbers that equal one.
  const Discretization layer({.bin_boundaries = {{0.1, 0.3, 0.7}}});
  EXPECT_EQ(layer(Tensor::from<float>({0.1F, 0.3F, 0.7F}, {3})).to_vector<int64_t>(),
            (Bins{1, 2, 3}));
  // The numbers before them are below.
  const std::vector<float> before = {std::nextafter(0.1F, 0.0F), std::nextafter(0.3F, 0.0F),
                                     std::nextafter(0.7F, 0.0F)};
  EXPECT_EQ(layer(Tensor::from(before, {3})).to_vector<int64_t>(), (Bins{0, 1, 2}));
  const Discretization encoded({.bin_boundaries = {{0.1, 0.7}}, .output_mode = "one_hot"});
  // The layer's dtype is float32, to which it casts float64 numbers.
  EXPECT_EQ(encoded(Tensor::from<double>({0.1}, {1, 1})).to_vector<float>(),
            (std::vector<float>{0, 1, 0}));
  EXPECT_EQ(encoded(Tensor::from<float>({0.7F}, {1, 1})).to_vector<float>(),
            (std::vector<float>{0, 0, 1}));
  // Configs have the numbers as they were given.
  EXPECT_EQ(layer->bin_boundaries(), (Boundaries{0.1, 0.3, 0.7}));
}

TEST(DiscretizationTest, NanGoesToTheLastBin) {
  const Discretization layer({.bin_boundaries = {{0, 1}}});
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(layer(Tensor::from<float>({nan}, {1})).item<int64_t>(), 2);
}

// The example in Keras's documentation.
TEST(DiscretizationTest, AdaptUsesQuantiles) {
  const Discretization layer({.num_bins = 4});
  layer->adapt(samples());
  EXPECT_EQ(layer(samples()).to_vector<int64_t>(), (Bins{0, 2, 3, 2, 1, 3, 3, 1}));
}

TEST(DiscretizationTest, AdaptReadsTheFirstBatches) {
  const auto batches =
      data::Dataset::from_tensor_slices(Tensor::from<float>({1, 2, 90, 99}, {4})).batch(2);
  const layers::Discretization all({.num_bins = 2}), some({.num_bins = 2}), same({.num_bins = 2});
  all->adapt(batches);
  some->adapt(batches, 1);
  same->adapt(Tensor::from<float>({1, 2}, {2}));
  EXPECT_EQ(some->bin_boundaries(), same->bin_boundaries());
  EXPECT_NE(some->bin_boundaries(), all->bin_boundaries());
}

TEST(DiscretizationTest, QuantilesAreInterpolated) {
  const Discretization layer({.num_bins = 2});
  layer->adapt(
      data::Dataset::from_tensor_slices(Tensor::from<int64_t>({10, 20, 40}, {3})).batch(2));
  EXPECT_EQ(layer->bin_boundaries(), (Boundaries{15}));
}

TEST(DiscretizationTest, FewValuesGiveFewerBins) {
  const Discretization layer({.num_bins = 4, .output_mode = "one_hot"});
  layer->adapt(Tensor::from<float>({3, 1}, {2}));
  EXPECT_EQ(layer->bin_boundaries(), (Boundaries{1}));
  EXPECT_EQ(layer(samples()).shape(), Shape({2, 4, 2}));
  EXPECT_NO_THROW(layers::deserialize(layers::serialize(*layer)));
}

TEST(DiscretizationTest, ConfigsOmitKeysThatKerasRejects) {
  const Config config = layers::serialize(*Discretization({.num_bins = 2}))["config"];
  EXPECT_EQ(config.find("trainable"), nullptr);
}

TEST(DiscretizationTest, TheConfigContainsTheAdaptedState) {
  const Discretization layer({.num_bins = 4});
  layer->adapt(samples());
  const auto copy = layers::deserialize(layers::serialize(*layer));
  EXPECT_EQ(copy(samples()).to_vector<int64_t>(), layer(samples()).to_vector<int64_t>());
}

TEST(DiscretizationTest, AcceptsRaggedIntegers) {
  const Discretization layer({.bin_boundaries = {{2}}});
  const auto y = layer(Tensors(RaggedTensor::from_rows<int32_t>({{1, 2}, {}}))).leaf().ragged();
  EXPECT_EQ(y.values.to_vector<int64_t>(), (Bins{0, 1}));
}

TEST(DiscretizationTest, EncodingsMayBeSparse) {
  const layers::Discretization layer(
      {.bin_boundaries = {{0, 1}}, .output_mode = "one_hot", .sparse = true});
  const SparseTensor y = layer(Tensors(Tensor::from<float>({.5, -1}, {2, 1}))).leaf().sparse();
  EXPECT_EQ(y.dense_shape, Shape({2, 3}));
  EXPECT_EQ(y.indices.to_vector<int64_t>(), (std::vector<int64_t>{0, 1, 1, 0}));
  EXPECT_THROW(layers::Discretization({.bin_boundaries = {{0}}, .sparse = true}), ValueError);
}

TEST(DiscretizationTest, RejectsInvalidOptions) {
  EXPECT_THROW(Discretization({}), ValueError);
  EXPECT_THROW(Discretization({.bin_boundaries = {{2, 1}}}), ValueError);
  EXPECT_THROW(Discretization({.num_bins = 1}), ValueError);
  EXPECT_THROW(Discretization({.bin_boundaries = {{1, 2, 3}}, .num_bins = 3}), ValueError);
  EXPECT_THROW(Discretization({.num_bins = 2, .epsilon = 0}), ValueError);
}

TEST(DiscretizationTest, RejectsInvalidCalls) {
  const Discretization layer({.num_bins = 2});
  EXPECT_THROW(layer(samples()), RuntimeError);
  EXPECT_THROW(layer->adapt(Tensor::zeros({0})), ValueError);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_THROW(layer->adapt(Tensor::from<float>({nan}, {1})), ValueError);
  EXPECT_THROW(Discretization({.bin_boundaries = {{1}}})->adapt(samples()), RuntimeError);
}

TEST(DiscretizationTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "Discretization",
                         .config = R"({"bin_boundaries": [0.0, 1.0]})",
                         .inputs = float_spec({2, 3}),
                         .output = int_spec({2, 3})});
}

}  // namespace keel::discretization_test
