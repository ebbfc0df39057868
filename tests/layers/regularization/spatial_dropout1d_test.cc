#include <gtest/gtest.h>

#include <keel/layers/registry.h>
#include <keel/layers/regularization/regularization.h>

#include "tests/support/layer_contract.h"

namespace keel::spatial_dropout1d_test {

using layers::SpatialDropout1D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(SpatialDropout1DTest, DropsFeaturesOfASampleForAllSteps) {
  const SpatialDropout1D layer({.rate = 0.5, .seed = 3});
  const Tensor y = layer(Tensor::full<float>({20, 3, 10}, 1), {.training = true});
  int64_t dropped = 0;
  for (int64_t sample = 0; sample < 20; ++sample) {
    for (int64_t feature = 0; feature < 10; ++feature) {
      const float* first = y.data<float>().data() + sample * 30 + feature;
      EXPECT_TRUE(first[0] == 0 || first[0] == 2);
      EXPECT_EQ(first[0], first[10]);
      EXPECT_EQ(first[0], first[20]);
      dropped += first[0] == 0 ? 1 : 0;
    }
  }
  EXPECT_NEAR(static_cast<double>(dropped), 100, 36);
}

TEST(SpatialDropout1DTest, ConfigsOmitKeysThatKerasRejects) {
  const Config config = layers::serialize(*SpatialDropout1D({.rate = 0.25}))["config"];
  EXPECT_EQ(config.find("trainable"), nullptr);
  EXPECT_EQ(config["rate"].number(), 0.25);
}

TEST(SpatialDropout1DTest, RejectsInvalidRatesAndShapes) {
  EXPECT_THROW(SpatialDropout1D({.rate = 1.5}), ValueError);
  EXPECT_THROW(SpatialDropout1D({})(Tensor::zeros({2, 3}), {.training = true}), ValueError);
}

TEST(SpatialDropout1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "SpatialDropout1D",
                         .config = R"({"rate": 0.5})",
                         .inputs = float_spec({2, 3, 4}),
                         .output = float_spec({2, 3, 4})});
}

}  // namespace keel::spatial_dropout1d_test
