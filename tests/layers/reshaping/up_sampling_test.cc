#include <keel/layers/reshaping/up_sampling.h>

#include <gtest/gtest.h>

#include <keel/layers/functional/functional.h>

#include "tests/layers/gradient_check.h"
#include "tests/support/layer_contract.h"

namespace keel::up_sampling_test {

using layers::UpSampling1D;
using layers::UpSampling2D;
using layers::UpSampling3D;
using testing_support::expect_layer_contract;
using testing_support::float_spec;

TEST(UpSampling1DTest, RepeatsEachStep) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {1, 2, 2});
  const Tensor y = UpSampling1D({})(x);
  EXPECT_EQ(y.shape(), Shape({1, 4, 2}));
  EXPECT_EQ(y.to_vector<float>(), (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));
  EXPECT_EQ(UpSampling1D({.size = 3})(layers::input({.shape = {2, 4}})).shape(),
            Shape({kUnknown, 6, 4}));
}

TEST(UpSampling1DTest, GradientsMatchFiniteDifferences) {
  testing_support::expect_gradients_are_slopes(UpSampling1D({.size = 3}),
                                               testing_support::distinct_doubles({2, 2, 2}));
}

TEST(UpSampling1DTest, RejectsInvalidSizesAndShapes) {
  EXPECT_THROW(UpSampling1D({.size = 0}), ValueError);
  EXPECT_THROW(UpSampling1D({})(Tensor::zeros({1, 5})), ValueError);
}

TEST(UpSampling2DTest, RepeatsRowsAndColumns) {
  const Tensor x = Tensor::from<int32_t>({1, 2, 3, 4}, {1, 2, 2, 1});
  const Tensor y = UpSampling2D({.size = {1, 2}})(x);
  EXPECT_EQ(y.shape(), Shape({1, 2, 4, 1}));
  EXPECT_EQ(y.to_vector<int32_t>(), (std::vector<int32_t>{1, 1, 2, 2, 3, 3, 4, 4}));
  EXPECT_EQ(
      UpSampling2D({.data_format = "channels_first"})(layers::input({.shape = {3, 2, kUnknown}}))
          .shape(),
      Shape({kUnknown, 3, 4, kUnknown}));
}

TEST(UpSampling2DTest, GradientsMatchFiniteDifferences) {
  for (const char* interpolation : {"nearest", "bilinear", "bicubic", "lanczos3", "lanczos5"}) {
    testing_support::expect_gradients_are_slopes(
        UpSampling2D({.size = {2, 3}, .interpolation = interpolation, .dtype = DType::kFloat64}),
        testing_support::distinct_doubles({1, 2, 3, 2}));
  }
}

TEST(UpSampling2DTest, RejectsUnknownOptions) {
  EXPECT_THROW(UpSampling2D({.interpolation = "area"}), ValueError);
  EXPECT_THROW(UpSampling2D({.data_format = "last"}), ValueError);
  EXPECT_THROW(UpSampling3D({.size = {1, 0, 1}}), ValueError);
}

TEST(UpSampling3DTest, RepeatsPositionsOfAllAxes) {
  const Tensor x = Tensor::from<float>({1, 2}, {1, 1, 2, 1, 1});
  EXPECT_EQ(UpSampling3D({.size = {2, 1, 2}})(x).to_vector<float>(),
            (std::vector<float>{1, 1, 2, 2, 1, 1, 2, 2}));
}

TEST(UpSampling1DTest, MeetsTheContractOfLayers) {
  expect_layer_contract({.class_name = "UpSampling1D",
                         .config = R"({"size": 3})",
                         .inputs = float_spec({2, 3, 4}),
                         .output = float_spec({2, 9, 4})});
  expect_layer_contract({.class_name = "UpSampling2D",
                         .config = R"({"size": [2, 3], "interpolation": "bilinear"})",
                         .inputs = float_spec({2, 3, 4, 2}),
                         .output = float_spec({2, 6, 12, 2})});
  expect_layer_contract({.class_name = "UpSampling3D",
                         .config = "{}",
                         .inputs = float_spec({2, 3, 4, 1, 2}),
                         .output = float_spec({2, 6, 8, 2, 2})});
}

}  // namespace keel::up_sampling_test
