#include <keel/layers/regularization/spatial_dropout.h>

#include <gtest/gtest.h>

#include <keel/layers/registry.h>

#include "tests/support/layer_contract.h"

namespace keel::spatial_dropout_test {

using layers::SpatialDropout2D;
using layers::SpatialDropout3D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

// Expects `channels` channels of each sample to be dropped or scaled as a whole. Position p of
// channel c is at c * channel_stride + p * position_stride. Returns the number of dropped ones.
int64_t dropped_channels(const Tensor& y, int64_t channels, int64_t channel_stride,
                         int64_t position_stride) {
  const int64_t size = y.size() / y.dim(0);
  int64_t dropped = 0;
  for (int64_t sample = 0; sample < y.dim(0); ++sample) {
    for (int64_t c = 0; c < channels; ++c) {
      const float* first = y.data<float>().data() + sample * size + c * channel_stride;
      EXPECT_TRUE(first[0] == 0 || first[0] == 2);
      for (int64_t p = 0; p < size / channels; ++p) EXPECT_EQ(first[p * position_stride], first[0]);
      dropped += first[0] == 0 ? 1 : 0;
    }
  }
  return dropped;
}

TEST(SpatialDropoutTest, DropsChannelsOfImages) {
  const SpatialDropout2D last({.rate = 0.5, .seed = 3});
  const Tensor x = Tensor::full<float>({20, 3, 2, 10}, 1);
  EXPECT_NEAR(static_cast<double>(dropped_channels(last(x, {.training = true}), 10, 1, 10)), 100,
              36);
  const SpatialDropout2D first({.rate = 0.5, .data_format = "channels_first", .seed = 3});
  const Tensor y = first(Tensor::full<float>({20, 10, 3, 2}, 1), {.training = true});
  EXPECT_NEAR(static_cast<double>(dropped_channels(y, 10, 6, 1)), 100, 36);
}

TEST(SpatialDropoutTest, DropsChannelsOfVolumes) {
  const SpatialDropout3D last({.rate = 0.5, .seed = 3});
  const Tensor y = last(Tensor::full<float>({20, 2, 3, 2, 10}, 1), {.training = true});
  EXPECT_NEAR(static_cast<double>(dropped_channels(y, 10, 1, 10)), 100, 36);
  const SpatialDropout3D first({.rate = 0.5, .data_format = "channels_first", .seed = 3});
  const Tensor z = first(Tensor::full<float>({20, 10, 2, 3, 2}, 1), {.training = true});
  EXPECT_NEAR(static_cast<double>(dropped_channels(z, 10, 12, 1)), 100, 36);
}

TEST(SpatialDropoutTest, ConfigsOmitKeysThatKerasRejects) {
  const Config config = layers::serialize(*SpatialDropout2D({.rate = 0.25}))["config"];
  EXPECT_EQ(config.find("trainable"), nullptr);
  EXPECT_EQ(config["rate"].number(), 0.25);
  EXPECT_EQ(config["data_format"].string(), "channels_last");
  EXPECT_EQ(layers::serialize(*SpatialDropout3D({}))["config"].find("trainable"), nullptr);
}

TEST(SpatialDropoutTest, RejectsInvalidOptionsAndShapes) {
  EXPECT_THROW(SpatialDropout2D({.rate = 1.5}), ValueError);
  EXPECT_THROW(SpatialDropout3D({.data_format = "channels"}), ValueError);
  EXPECT_THROW(SpatialDropout2D({})(Tensor::zeros({2, 3, 4}), {.training = true}), ValueError);
  EXPECT_THROW(SpatialDropout3D({})(Tensor::zeros({2, 3, 4, 5}), {.training = true}), ValueError);
}

TEST(SpatialDropoutTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "SpatialDropout2D",
                         .config = R"({"rate": 0.25, "data_format": "channels_first"})",
                         .inputs = float_spec({2, 3, 4, 5}),
                         .output = float_spec({2, 3, 4, 5})});
  expect_layer_contract({.class_name = "SpatialDropout3D",
                         .config = R"({"rate": 0.25})",
                         .inputs = float_spec({2, 2, 3, 4, 5}),
                         .output = float_spec({2, 2, 3, 4, 5})});
}

}  // namespace keel::spatial_dropout_test
