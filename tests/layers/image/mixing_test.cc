#include <keel/layers/image/mixing.h>

#include <algorithm>
#include <cmath>

#include <keel/autodiff/ops.h>

#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::mixing_test {

using layers::CutMix;
using layers::MixUp;
using testing_support::expect_augmentation;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::float_spec;
using testing_support::random_images;

// Returns a batch of images of which image i has the value i everywhere, and one-hot labels.
Tensors numbered(int64_t n, int64_t size) {
  std::vector<float> values, labels(n * n);
  for (int64_t i = 0; i < n; ++i) {
    values.insert(values.end(), size * size, static_cast<float>(i));
    labels[i * n + i] = 1;
  }
  return Tensors{{"images", Tensor::from(values, {n, size, size, 1})},
                 {"labels", Tensor::from(labels, {n, n})}};
}

TEST(MixUpTest, LabelsAreMixedAsImagesAre) {
  const MixUp layer({.alpha = 1, .seed = 1});
  const Tensors out = layer(numbered(6, 2), {.training = true});
  // The value of an image is the mean of the numbers of its labels.
  const Tensor numbers = Tensor::from<float>({0, 1, 2, 3, 4, 5}, {6, 1});
  const Tensor means = ops::reshape(ops::matmul(out["labels"].tensor(), numbers), {6, 1, 1, 1});
  expect_near(ops::broadcast_to(means, {6, 2, 2, 1}), out["images"].tensor(), {.absolute = 1e-5});
  expect_near(ops::sum(out["labels"].tensor(), {1}), Tensor::full<float>({6}, 1),
              {.absolute = 1e-6});
}

TEST(MixUpTest, WeightsHaveABetaDistribution) {
  // Mean 1/2 and variance 1 / (4 (2 alpha + 1)).
  for (const double alpha : {0.2, 3.0}) {
    const MixUp layer({.alpha = alpha, .seed = 1});
    const Tensors two = numbered(2, 1);
    double sum = 0, squares = 0;
    int count = 0;
    for (int call = 0; call < 2000; ++call) {
      const Tensors out = layer(two, {.training = true});
      const std::vector<float> labels = out["labels"].tensor().to_vector<float>();
      // A permutation that changes nothing hides the weight.
      if (labels[0] > 1 - 1e-6 && labels[3] > 1 - 1e-6) continue;
      sum += labels[0];
      squares += labels[0] * labels[0];
      ++count;
    }
    const double mean = sum / count, variance = squares / count - mean * mean;
    EXPECT_GT(count, 800);
    EXPECT_NEAR(mean, 0.5, 5 * std::sqrt(variance / count));
    EXPECT_NEAR(variance, 1 / (4 * (2 * alpha + 1)), 0.02);
  }
}

TEST(CutMixTest, LabelsAreMixedByArea) {
  const CutMix layer({.factor = {1, 1}, .seed = 1});
  const Tensors out = layer(numbered(8, 64), {.training = true});
  const std::vector<float> images = out["images"].tensor().to_vector<float>();
  const std::vector<float> labels = out["labels"].tensor().to_vector<float>();
  int64_t cut = 0;
  for (int64_t i = 0; i < 8; ++i) {
    for (int64_t k = 0; k < 8; ++k) {
      const auto begin = images.begin() + i * 64 * 64;
      const auto pixels = std::count(begin, begin + 64 * 64, static_cast<float>(k));
      // The sides of a rectangle have whole pixels, the label has not.
      EXPECT_NEAR(labels[i * 8 + k], static_cast<double>(pixels) / (64 * 64), 0.04);
      cut += k != i && pixels > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(cut, 2);
}

TEST(MixingTest, MasksAndSingleImages) {
  const CutMix layer({.seed = 1});
  const Tensor x = numbered(4, 5)["images"].tensor();
  const Tensors out = layer(Tensors{{"images", x}, {"segmentation_masks", x.cast(DType::kInt32)}},
                            {.training = true});
  testing_support::expect_same_bits(out["segmentation_masks"].tensor().cast(DType::kFloat32),
                                    out["images"].tensor());
  const Tensor one = ops::squeeze(random_images(1, 4), 0);
  testing_support::expect_same_bits(layer(one, {.training = true}), one);
  expect_near(MixUp({})(one, {.training = true}), one, {.absolute = 1e-4});
}

TEST(MixingTest, AreReproducibleAugmentations) {
  expect_augmentation("MixUp", R"({"alpha": 1})", false);
  expect_augmentation("CutMix", R"({"factor": [0.9, 1]})", false);
}

TEST(MixingTest, RejectInvalidOptionsAndLabels) {
  EXPECT_THROW(MixUp({.alpha = 0}), ValueError);
  EXPECT_THROW(CutMix({.factor = 2}), ValueError);
  const MixUp layer({});
  const Tensor images = Tensor::zeros({2, 1, 1, 1});
  EXPECT_THROW(layer(Tensors{{"images", images}, {"labels", Tensor::zeros({2}, DType::kInt64)}},
                     {.training = true}),
               TypeError);
  EXPECT_THROW(
      layer(Tensors{{"images", images}, {"labels", Tensor::zeros({3})}}, {.training = true}),
      ValueError);
}

TEST(MixingTest, MeetTheContractOfLayers) {
  const Specs batch{{"images", float_spec({2, 2, 2, 3})}, {"labels", float_spec({2, 3})}};
  expect_layer_contract(
      {.class_name = "MixUp", .config = R"({"alpha": 0.25})", .inputs = batch, .output = batch});
  expect_layer_contract({.class_name = "CutMix",
                         .config = R"({"factor": [0.25, 0.5]})",
                         .inputs = batch,
                         .output = batch});
}

TEST(CutMixTest, FactorsMustBeInRange) { EXPECT_THROW(CutMix({.factor = {-1, 0.5}}), ValueError); }

}  // namespace keel::mixing_test
