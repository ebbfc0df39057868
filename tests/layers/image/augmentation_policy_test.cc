#include <keel/layers/image/augmentation_policy.h>

#include <algorithm>
#include <cmath>
#include <set>

#include <keel/autodiff/ops.h>

#include "tests/layers/image/augmentation_check.h"
#include "tests/support/errors.h"
#include "tests/support/layer_contract.h"

namespace keel::augmentation_policy_test {

using layers::AugMix;
using layers::RandAugment;
using testing_support::expect_augmentation;
using testing_support::expect_layer_contract;
using testing_support::expect_near;
using testing_support::expect_same_bits;
using testing_support::float_spec;
using testing_support::random_images;

TEST(AugMixTest, WithoutStepsTheMixtureIsTheImage) {
  const Tensor x = random_images(4, 6);
  const AugMix layer({.chain_depth = 0});
  expect_near(layer(x, {.training = true}), x, {.absolute = 1e-2});
}

TEST(AugMixTest, ResultsStayInTheRange) {
  const AugMix layer({.value_range = {0, 1}, .factor = 1, .seed = 1});
  const Tensor x = random_images(4, 6) / 255.0;
  for (int call = 0; call < 20; ++call) {
    const std::vector<float> y = layer(x, {.training = true}).to_vector<float>();
    const auto [low, high] = std::ranges::minmax(y);
    EXPECT_TRUE(low >= 0 && high <= 1) << low << " " << high;
  }
}

TEST(RandAugmentTest, WithoutStepsTheImageStays) {
  const Tensor x = random_images(4, 6);
  expect_same_bits(RandAugment({.num_ops = 0})(x, {.training = true}), x);
}

TEST(RandAugmentTest, AllStepsOccur) {
  // Each of the eleven steps changes this batch in its own way.
  const Tensor x = random_images(2, 6);
  const RandAugment layer({.num_ops = 1, .factor = {0.5, 0.5}, .seed = 1});
  std::set<std::vector<float>> seen;
  for (int call = 0; call < 200; ++call) {
    seen.insert(layer(x, {.training = true}).to_vector<float>());
  }
  EXPECT_GE(seen.size(), 11);
}

TEST(RandAugmentTest, OnlyGeometryMovesMasks) {
  const RandAugment layer({.factor = 0.8, .interpolation = "nearest", .seed = 1});
  const Tensor masks = ops::floor(random_images(2, 8)).cast(DType::kInt32);
  const std::vector<int32_t> before = masks.to_vector<int32_t>();
  const std::set<int32_t> classes(before.begin(), before.end());
  for (int call = 0; call < 30; ++call) {
    const Tensors out =
        layer(Tensors{{"images", random_images(2, 8)}, {"segmentation_masks", masks}},
              {.training = true});
    for (const int32_t v : out["segmentation_masks"].tensor().to_vector<int32_t>()) {
      EXPECT_TRUE(classes.contains(v)) << v;
    }
  }
}

TEST(AugmentationPolicyTest, AreReproducibleAugmentations) {
  // Equalization counts the pixels of the whole batch.
  expect_augmentation("AugMix", R"({"factor": 0.5, "chain_depth": 6})", false);
  expect_augmentation("RandAugment", R"({"factor": [0.5, 0.6], "num_ops": 5})", false);
}

TEST(AugmentationPolicyTest, RejectInvalidOptions) {
  EXPECT_THROW(AugMix({.num_chains = 0}), ValueError);
  EXPECT_THROW(AugMix({.alpha = 0}), ValueError);
  EXPECT_THROW(AugMix({.factor = 2}), ValueError);
  EXPECT_THROW(RandAugment({.num_ops = 17}), ValueError);
  EXPECT_THROW(RandAugment({.interpolation = "cubic"}), ValueError);
}

TEST(AugmentationPolicyTest, MeetTheContractOfLayers) {
  const Specs images = float_spec({2, 2, 2, 3});
  expect_layer_contract({.class_name = "AugMix",
                         .config = R"({"num_chains": 2, "all_ops": false, "factor": 0.5})",
                         .inputs = images,
                         .output = images});
  expect_layer_contract({.class_name = "RandAugment",
                         .config = R"({"num_ops": 3, "value_range": [0, 1]})",
                         .inputs = images,
                         .output = images});
}

}  // namespace keel::augmentation_policy_test
